#!/bin/bash
set -e
cat > /logs/agent/output.json <<'END'
{"orders": [{"item": "bolts", "quantity": 20}, {"item": "washers", "quantity": 10}], "total": 30}
END

#!/bin/bash
set -e
cat > /logs/agent/output.json <<'END'
{"name": "Lena Ortiz", "email": "lena.ortiz@example.com", "phone": "+34612555018"}
END

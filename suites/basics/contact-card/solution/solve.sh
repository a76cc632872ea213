#!/bin/bash
set -e
cat > /logs/agent/output.json <<'END'
{"person": "Lena Ortiz", "email": "lena.ortiz@example.com", "phone": "+34612555018"}
END

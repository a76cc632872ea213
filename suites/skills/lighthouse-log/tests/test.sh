#!/bin/bash
# The same for every step: its own checks lie beside this file.
curl -LsSf https://astral.sh/uv/install.sh | sh
source "$HOME/.local/bin/env"

if uvx --with pytest==8.4.1 --with pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests -rA; then
  echo '{"reward": 1.0}' > /logs/verifier/reward.json
else
  echo '{"reward": 0.0}' > /logs/verifier/reward.json
fi

#!/bin/sh
cat "$(dirname "$0")"/../signs/*.txt

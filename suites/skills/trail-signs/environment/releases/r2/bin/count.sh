#!/bin/sh
ls "$(dirname "$0")"/../signs | wc -l

#!/usr/bin/env bash
# Prints the packages of the main module whose tests run with the race detector
# (racy.sh yes) or without it (racy.sh no). With it run the packages that start
# goroutines, use channels or package sync, or have tests on a database. Exempt
# are internal/dev/rules, which only reads sources that do so, and
# internal/triage/evaluate, which computes for a minute with the detector and
# starts goroutines only in packages that run with it. The nightly workflow
# races every package.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
concurrent='(^|[^[:alnum:]_"])go (func|[[:alnum:]_.]+)\(|<-|make\(chan |\.Go\(|"(sync|sync/atomic|[^"]*/errgroup|[^"]*/pgxpool|[^"]*/postgres/dbtest)"'
folders=$(git ls-files --cached --others --exclude-standard -z '*.go' | xargs -0 grep -lE -- "$concurrent" 2>/dev/null | xargs -n1 dirname | sort -u | grep -vxF -e internal/dev/rules -e internal/triage/evaluate)
"$go" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
	folder=${dir#"$PWD"}
	folder=${folder#/}
	if grep -qxF -- "${folder:-.}" <<<"$folders"; then answer=yes; else answer=no; fi
	if [ "$answer" = "$1" ]; then echo "$package"; fi
done

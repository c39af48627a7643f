#!/usr/bin/env bash
# Prints the packages of the main module whose tests run with the race detector
# (racy.sh yes) or without it (racy.sh no). With it run the packages whose own
# code starts goroutines, uses channels or package sync. Tests of the others run
# things at once too, but what these share is the database or belongs to one of
# the former packages. Exempt are internal/dev/rules, which only reads sources,
# and internal/triage/evaluate, which computes for a minute with the detector and
# starts goroutines only in packages that run with it. The nightly workflow
# races every package. Those with the most tests come first: go test begins in
# this order, and the last to end would otherwise be alone.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
concurrent='(^|[^[:alnum:]_"])go (func|[[:alnum:]_.]+)\(|<-|make\(chan |\.Go\(|"(sync|sync/atomic|[^"]*/errgroup)"'
folders=$(git ls-files --cached --others --exclude-standard -z '*.go' ':!*_test.go' | xargs -0 grep -lE -- "$concurrent" 2>/dev/null | xargs -n1 dirname | sort -u | grep -vxF -e internal/dev/rules -e internal/triage/evaluate)
"$go" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
	folder=${dir#"$PWD"}
	folder=${folder#/}
	if grep -qxF -- "${folder:-.}" <<<"$folders"; then answer=yes; else answer=no; fi
	if [ "$answer" = "$1" ]; then echo "$(cat "$dir"/*_test.go 2>/dev/null | wc -l) $package"; fi
done | sort -rn | cut -d' ' -f2

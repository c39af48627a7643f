#!/usr/bin/env bash
# Prints the packages of the main module whose tests run with the race detector
# (racy.sh yes) or without it (racy.sh no). With it run the packages whose own
# code starts goroutines or uses channels, locks or atomics. Tests of the others run
# things at once too, but what these share is the database or belongs to one of
# the former packages. Exempt are internal/dev/rules, which only reads sources,
# and internal/tenant/policy and internal/triage/evaluate, whose tests compute for
# minutes with the detector, and which packages that run with it call at once. The
# nightly workflow races every package. Those with the most tests come first: go test begins in
# this order, and the last to end would otherwise be alone.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
concurrent='(^|[^[:alnum:]_"])go (func|[[:alnum:]_.]+)\(|<-|make\(chan |\.Go\(|sync\.(Mutex|RWMutex|WaitGroup|Pool|Map|Cond)|atomic\.|/errgroup"'
folders=$(git ls-files --cached --others --exclude-standard -z '*.go' ':!*_test.go' | xargs -0 grep -lE -- "$concurrent" 2>/dev/null | xargs -n1 dirname | sort -u | grep -vxF -e internal/dev/rules -e internal/tenant/policy -e internal/triage/evaluate)
"$go" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
	folder=${dir#"$PWD"}
	folder=${folder#/}
	if grep -qxF -- "${folder:-.}" <<<"$folders"; then answer=yes; else answer=no; fi
	if [ "$answer" = "$1" ]; then echo "$(cat "$dir"/*_test.go 2>/dev/null | wc -l) $package"; fi
done | sort -rn | cut -d' ' -f2

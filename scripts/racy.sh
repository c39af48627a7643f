#!/usr/bin/env bash
# Decides which tests of the main module run with the race detector. Prints the packages
# whose tests run with it (racy.sh yes) or without it (racy.sh no), and for the packages
# of which some tests run with it, arguments of go test for these tests (racy.sh some)
# and for the others (racy.sh others).
#
# With it run the packages whose own code starts goroutines or uses channels, locks or
# atomics. A wait for a context or a timer shares nothing. Tests of the others run
# things at once too, but what these share is the database or belongs to one of
# the former packages. Exempt are internal/tenant/policy, internal/triage/evaluate and
# internal/triage/classify, whose tests compute for minutes with the detector, and which
# packages that run with it call at once. internal/dev/rules, which only reads sources, is
# in neither list: make rules runs it, also when the result cache has a result.
#
# Most tests of internal/server/rest and internal/triage/engine do one thing after the
# other. The tests of files that start goroutines or use channels, locks or atomics run
# with the detector, the others without it: internal/dev/rules compares that with the
# syntax.
#
# The nightly workflow races every test. Packages with the most tests come first: go test
# begins in this order, and the last to end would otherwise be alone.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
concurrent='(^|[^[:alnum:]_"])go (func|[[:alnum:]_.]+)\(|<-|make\(chan |\.Go\(|sync\.(Mutex|RWMutex|WaitGroup|Pool|Map|Cond)|atomic\.|/errgroup"'
waits='<-(ctx\.Done\(\)|timer\.C|tick\.C|ticker\.C)'
split='internal/server/rest internal/triage/engine'
# matching prints those of the files, each ended by NUL on standard input, with a line that is concurrent.
matching() { xargs -0 grep -HE -- "$concurrent" | grep -vE -- "^[^:]*:[^/]*$waits" | cut -d: -f1 | uniq; }
case $1 in some | others)
	files=$(printf '%s/*_test.go\0' $split | xargs -0 git ls-files --cached --others --exclude-standard -z -- | matching)
	tests=$(xargs grep -hoE '^func (Test|Fuzz)[[:alnum:]_]+' <<<"$files" | cut -c6- | grep -vxF TestMain | sort -u | paste -sd '|')
	[ "$1" = some ] && flag=-run || flag=-skip
	echo "$flag ^(${tests:?})\$" $(printf './%s ' $split)
	exit
esac
folders=$(git ls-files --cached --others --exclude-standard -z '*.go' ':!*_test.go' | matching | xargs -n1 dirname | sort -u | grep -vxF -e internal/tenant/policy -e internal/triage/evaluate -e internal/triage/classify $(printf -- '-e %s ' $split))
"$go" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
	folder=${dir#"$PWD"}
	folder=${folder#/}
	case " internal/dev/rules $split " in *" $folder "*) continue ;; esac
	if grep -qxF -- "${folder:-.}" <<<"$folders"; then answer=yes; else answer=no; fi
	if [ "$answer" = "$1" ]; then echo "$(cat "$dir"/*_test.go 2>/dev/null | wc -l) $package"; fi
done | sort -rn | cut -d' ' -f2

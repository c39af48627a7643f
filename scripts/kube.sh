#!/usr/bin/env bash
# Builds a Kubernetes control plane for the tests of deploy/k8s and prints the
# folder it is in.
set -euo pipefail

readonly kwok=v0.8.0
# name, module, version, folder of its custom resource definitions
readonly definitions='
keda github.com/kedacore/keda/v2 v2.21.0 config/crd/bases
prometheus-operator github.com/prometheus-operator/prometheus-operator v0.85.0 example/prometheus-operator-crd
cloudnative-pg github.com/cloudnative-pg/cloudnative-pg v1.28.0 config/crd/bases
external-secrets github.com/external-secrets/external-secrets v1.3.2 config/crds/bases
gateway-api sigs.k8s.io/gateway-api v1.4.1 config/crd/standard
'
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root

usage() {
	cat <<USAGE
usage: scripts/kube.sh [DIR]      build what is missing
       scripts/kube.sh -find [DIR]  build nothing, fail if something is missing
       scripts/kube.sh -h         this text

Puts kube-apiserver, kube-controller-manager, kube-scheduler and kubectl (as
deploy/kubetools/go.mod pins them), kwok $kwok, etcd (Debian's package, unpacked
and not installed) and the custom resource definitions that deploy/k8s uses
into DIR/VERSION-GOVERSION (default .cache/kube), and prints that folder.

The first time takes about 16 minutes of processor time and 3 GB of Go's build
cache. It can be interrupted: what is built stays, and a complete folder needs
neither the network nor the compiler again. The builds run niced, one at a time.

Examples:
  scripts/kube.sh
  scripts/kube.sh -find || echo "the control plane is not built"
USAGE
}

say() { printf 'kube.sh: %s\n' "$*" >&2; }

# timed NAME COMMAND...: runs a command niced and says what it cost.
timed() {
	local name=$1 TIMEFORMAT='%U s user, %S s system, %R s elapsed'
	shift
	say "building $name"
	time nice -n 19 "$@" >&2
}

build_kubernetes() {
	local name=$1 out=$2 v=$3 minor
	minor=${v#v1.}
	timed "$name $v" go build -C "$root/deploy/kubetools" -p 1 -trimpath -o "$out.part" \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$v -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%%.*}" \
		"k8s.io/kubernetes/cmd/$name"
	mv "$out.part" "$out"
}

# build_kwok OUT: kwok and the stages that make its nodes ready and its pods
# start, complete and go.
build_kwok() {
	local out=$1 tmp stages
	tmp=$(mktemp -d "$out.XXXXXX")
	timed "kwok $kwok" env GOBIN="$tmp" go install -p 1 -trimpath -ldflags '-s -w' "sigs.k8s.io/kwok/cmd/kwok@$kwok"
	stages=$(module_dir sigs.k8s.io/kwok "$kwok")/kustomize/stage
	for part in node/fast/node-initialize node/heartbeat/node-heartbeat pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
		cat "$stages/$part.yaml"
		echo ---
	done >"$tmp/stages.yaml"
	chmod u+w "$tmp"/*
	rm -rf "$(dirname "$out")"/kwok-v*[0-9]
	mv "$tmp" "$out"
}

# module_dir MODULE VERSION: prints the folder of a module, downloading it if
# the module cache lacks it.
module_dir() {
	local dir
	dir=$(cd / && go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	[[ -d $dir ]] || { say "the module $1@$2 cannot be downloaded" && return 1; }
	echo "$dir"
}

copy_definitions() {
	local out=$1 from
	from=$(module_dir "$2" "$3")/$4
	mkdir -p "$out.part"
	cp "$from"/*.yaml "$out.part"
	chmod -R u+w "$out.part"
	rm -f "$out.part/kustomization.yaml"
	mv "$out.part" "$out"
}

# unpack_etcd OUT: Debian's package without installing it, which would start a
# service and would need root.
unpack_etcd() {
	local out=$1 tmp
	if [[ -x /usr/bin/etcd ]]; then
		ln -sf /usr/bin/etcd "$out"
		return
	fi
	command -v apt-get >/dev/null || { say "etcd is not installed, and there is no apt-get to fetch it with" && return 1; }
	tmp=$(mktemp -d "$out.XXXXXX")
	chmod 777 "$tmp"
	(cd "$tmp" && { apt-get download -qq etcd-server >&2 || { apt-get update -qq >&2 && apt-get download -qq etcd-server >&2; }; } && dpkg-deb -x etcd-server_*.deb .)
	mv "$tmp/usr/bin/etcd" "$out"
	rm -rf "$tmp"
}

# pinned: prints the version of Kubernetes that deploy/kubetools/go.mod names.
pinned() { sed -n 's/^\(require \|\t\)k8s.io\/kubernetes \(v[0-9.]*\)$/\2/p' "$root/deploy/kubetools/go.mod"; }

# each VERB DIR: calls "VERB WHAT OUT ARGUMENTS" for everything that belongs
# into DIR and is not there.
each() {
	local verb=$1 dir=$2 name module v folder
	while read -r name module v folder; do
		[[ -z $name || -d $dir/crds/$name-$v ]] || "$verb" copy_definitions "$dir/crds/$name-$v" "$module" "$v" "$folder"
	done <<<"$definitions"
	[[ -x $dir/etcd ]] || "$verb" unpack_etcd "$dir/etcd"
	for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
		[[ -x $dir/$name ]] || "$verb" build_kubernetes "$name" "$dir/$name" "$(pinned)"
	done
	[[ -x $dir/kwok-$kwok/kwok ]] || "$verb" build_kwok "$dir/kwok-$kwok"
}

missing() { say "missing: $*" && complete=no; }

run() { "$@"; }

main() {
	local find=no complete=yes dir
	case "${1:-}" in
	-h | --help | help)
		usage
		return
		;;
	-find)
		find=yes
		shift
		;;
	-*)
		usage >&2
		return 2
		;;
	esac
	export GOTOOLCHAIN=local CGO_ENABLED=0
	dir=${1:-$root/.cache/kube}/$(pinned)-$(go env GOVERSION)
	if [[ $find == yes ]]; then
		each missing "$dir"
		[[ $complete == yes ]]
	else
		mkdir -p "$dir/crds"
		exec 9>"$dir/lock"
		flock 9
		each run "$dir"
	fi
	cd "$dir" && pwd
}

main "$@"

#!/usr/bin/env bash
# bundle.sh VERSION [OS/ARCH...]
#
# Builds bin/bundle/countersign-VERSION-OS-ARCH.mcpb, which installs `countersign
# mcp` in a desktop assistant, and bin/bundle/server.json, which describes the
# release to the MCP registry. The default platforms are those of a release.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: scripts/bundle.sh VERSION [OS/ARCH...], with a version such as 1.2.3}
shift
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
mcpb=internal/server/mcpserver/testdata/npm/node_modules/.bin/mcpb
[ -x "$mcpb" ] || { echo "bundle.sh: $mcpb is missing; run make npm" >&2; exit 1; }
out=bin/bundle
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

edit='const fs = require("fs"), [from, to, change] = process.argv.slice(1), o = JSON.parse(fs.readFileSync(from));
Object.assign(o, JSON.parse(change)); fs.writeFileSync(to, JSON.stringify(o, null, 2) + "\n")'
packages=
for platform in "$@"; do
	os=${platform%/*}
	arch=${platform#*/}
	file=countersign-$version-$os-$arch.mcpb
	mkdir -p "$work/$os-$arch/server"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch ${GO:-go} build -trimpath -ldflags='-s -w' -o "$work/$os-$arch/server/countersign" ./cmd/countersign
	cp LICENSE "$work/$os-$arch/"
	node -e "$edit" deploy/bundle/manifest.json "$work/$os-$arch/manifest.json" \
		"{\"version\":\"$version\",\"compatibility\":{\"platforms\":[\"$os\"]}}"
	"$mcpb" validate "$work/$os-$arch/manifest.json"
	"$mcpb" pack "$work/$os-$arch" "$out/$file"
	sum=$(sha256sum "$out/$file" | cut -d' ' -f1)
	packages+=${packages:+,}"{\"registryType\":\"mcpb\",\"identifier\":\"https://github.com/countersign-dev/countersign/releases/download/v$version/$file\",
		\"version\":\"$version\",\"fileSha256\":\"$sum\",\"transport\":{\"type\":\"stdio\"}}"
done
node -e "$edit" deploy/bundle/server.json "$out/server.json" "{\"version\":\"$version\",\"packages\":[$packages]}"
echo "$out/server.json"

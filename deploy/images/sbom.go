package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// rootsModule holds the CA certificates of the image.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// describeModules returns an SBOM in CycloneDX's JSON: the programs, the modules that
// Go linked into each, the standard library, and the certificates. It has neither
// a time nor a number of its own, so that the same image has the same SBOM.
func describeModules(p programs, withRoots bool) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = ""
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: "countersign", Type: cyclonedx.ComponentTypeContainer, Name: "countersign", Version: p.version,
	}}
	components := make(map[string]cyclonedx.Component)
	var links []cyclonedx.Dependency
	top := []string{}
	for _, name := range names() {
		info := p.info[name]
		ref := "program:" + name
		components[ref] = cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeApplication, Name: "/" + name, Version: p.version}
		var uses []string
		for _, module := range modulesOf(info) {
			components[module.BOMRef] = module
			uses = append(uses, module.BOMRef)
		}
		slices.Sort(uses)
		links = append(links, cyclonedx.Dependency{Ref: ref, Dependencies: &uses})
		top = append(top, ref)
	}
	if own, ok := debug.ReadBuildInfo(); ok && withRoots {
		for _, module := range own.Deps {
			if module.Path == rootsModule {
				roots := library(module)
				components[roots.BOMRef] = roots
				top = append(top, roots.BOMRef)
			}
		}
	}
	links = append(links, cyclonedx.Dependency{Ref: "countersign", Dependencies: &top})
	all := slices.SortedFunc(maps.Values(components), func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bom.Components, bom.Dependencies = &all, &links
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// modulesOf returns the modules of a binary, and the standard library.
func modulesOf(info *buildinfo.BuildInfo) []cyclonedx.Component {
	version := strings.TrimPrefix(info.GoVersion, "go")
	purl := "pkg:golang/stdlib@" + version
	all := []cyclonedx.Component{
		{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: "stdlib", Version: version, PackageURL: purl},
		library(&info.Main),
	}
	for _, module := range info.Deps {
		all = append(all, library(module))
	}
	return all
}

func library(module *debug.Module) cyclonedx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	purl := "pkg:golang/" + module.Path + "@" + strings.ReplaceAll(module.Version, "+", "%2B")
	c := cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: purl}
	if module.Sum != "" {
		// Go's own hash of a module, of its files' hashes.
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return c
}

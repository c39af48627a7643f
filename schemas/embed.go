// Package schemas holds the machine-readable side of Countersign's contracts,
// so that every program carries the ones it was built with. It owns no rules
// of its own: tests hold each file to the code that it describes.
package schemas

import _ "embed" // for the directives below

var (
	//go:embed action-envelope.json
	actionEnvelope string
	//go:embed openapi.yaml
	openAPI string
)

// ActionEnvelope returns the JSON Schema (2020-12) of the action envelope. Its
// definition "proposal" is the schema of a submission.
func ActionEnvelope() []byte { return []byte(actionEnvelope) }

// OpenAPI returns the description (OpenAPI 3.1) of the HTTP interface, in
// YAML. It is one document that refers to nothing outside itself: TestBundle
// joins it from the files in openapi/ and action-envelope.json.
func OpenAPI() []byte { return []byte(openAPI) }

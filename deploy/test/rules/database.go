package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// commitsReplicated finds clusters of CloudNativePG with other settings than the ones that
// `make chaos` fails over: ANY 1 of at least two standbys, and no commit without it.
func commitsReplicated(_ Facts, t rendered.Typed) (broken []string) {
	for _, object := range t.Custom {
		if object.GroupVersionKind().Group != "postgresql.cnpg.io" || object.GetKind() != "Cluster" {
			continue
		}
		text := func(field string) string {
			value, _, _ := unstructured.NestedString(object.Object, "spec", "postgresql", "synchronous", field)
			return value
		}
		number := whole(object, "spec", "postgresql", "synchronous", "number")
		if text("method") != "any" || number != 1 || text("dataDurability") != "required" {
			broken = append(broken, fmt.Sprintf("%s waits for %s %d (%s), and tried is any 1 (required)", rendered.Name(object), text("method"), number, text("dataDurability")))
		}
		if n := whole(object, "spec", "instances"); n < 3 {
			broken = append(broken, fmt.Sprintf("%s has %d instances: commits wait while one of two is down", rendered.Name(object), n))
		}
	}
	return broken
}

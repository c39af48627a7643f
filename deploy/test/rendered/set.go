package rendered

import (
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Set is the rendered objects of a combination.
type Set struct {
	Combination

	Objects []*unstructured.Unstructured
}

// Find returns the object KIND/NAME.
func (s Set) Find(target string) (*unstructured.Unstructured, error) {
	for _, object := range s.Objects {
		if Name(object) == target {
			return object, nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", s.Name, target)
}

// Name returns KIND/NAME.
func Name(object *unstructured.Unstructured) string { return object.GetKind() + "/" + object.GetName() }

// Patched returns a copy of the set in which a JSON patch (RFC 6902) was
// applied to the object KIND/NAME.
func (s Set) Patched(target, patch string) (Set, error) {
	parsed, err := jsonpatch.DecodePatch([]byte(patch))
	if err != nil {
		return Set{}, fmt.Errorf("patch of %s: %w", target, err)
	}
	if _, err := s.Find(target); err != nil {
		return Set{}, err
	}
	patched := Set{Combination: s.Combination}
	for _, object := range s.Objects {
		object = object.DeepCopy()
		if Name(object) == target {
			before, err := object.MarshalJSON()
			if err != nil {
				return Set{}, fmt.Errorf("patch %s: %w", target, err)
			}
			after, err := parsed.Apply(before)
			if err != nil {
				return Set{}, fmt.Errorf("patch %s: %w", target, err)
			}
			object = &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(after); err != nil {
				return Set{}, fmt.Errorf("patch %s: %w", target, err)
			}
		}
		patched.Objects = append(patched.Objects, object)
	}
	return patched, nil
}

// Added returns a copy of the set with one more object, given as JSON.
func (s Set) Added(text string) (Set, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		return Set{}, fmt.Errorf("add an object to %s: %w", s.Name, err)
	}
	s.Objects = append(s.Objects[:len(s.Objects):len(s.Objects)], object)
	return s, nil
}

// Version returns the part of an image's name after the last colon.
func Version(image string) string { return image[strings.LastIndex(image, ":")+1:] }

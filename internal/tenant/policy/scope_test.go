package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestParseScope(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"*", "contacts", "contacts:write", "contacts:*", "a.b-c_d:0:*", string(policy.ScopeQuietOverride),
	} {
		if got, err := policy.ParseScope(text); err != nil || string(got) != text {
			t.Errorf("ParseScope(%q) = %q, %v, want it back", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                       "empty",
		":":                      "empty part",
		"contacts:":              "empty part",
		":write":                 "empty part",
		"a::b":                   "empty part",
		"Contacts:write":         "lower-case",
		"contacts write":         "lower-case",
		"contacts:wr*":           "star",
		"*:write":                "star",
		"contacts:**":            "star",
		"contact\u00e9":          "lower-case",
		strings.Repeat("a", 201): "200 bytes",
	} {
		_, err := policy.ParseScope(text)
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseScope(%q) = %v, want an invalid one that says %q", text, err, want)
		}
	}
}

func TestGranted(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ have, need, missing []string }{
		"nothing needed":                    {nil, nil, nil},
		"nothing had":                       {nil, []string{"a:b"}, []string{"a:b"}},
		"the same":                          {[]string{"a:b"}, []string{"a:b"}, nil},
		"another":                           {[]string{"a:c"}, []string{"a:b"}, []string{"a:b"}},
		"a pattern":                         {[]string{"a:*"}, []string{"a:b", "a:b:c"}, nil},
		"a pattern is not its own stem":     {[]string{"a:*"}, []string{"a", "ab:c"}, []string{"a", "ab:c"}},
		"a stem is not its pattern":         {[]string{"a"}, []string{"a:b"}, []string{"a:b"}},
		"everything":                        {[]string{"*"}, []string{"a", "a:b", "a:*", "*"}, nil},
		"a needed pattern wants one as big": {[]string{"a:b", "b:*"}, []string{"a:*", "b:c:*"}, []string{"a:*"}},
		"each once, in order":               {nil, []string{"z", "a", "z"}, []string{"z", "a"}},
		"a broken one grants nothing":       {[]string{"A*", "**", ""}, []string{"a"}, []string{"a"}},
		"a broken one is not granted":       {[]string{"*"}, []string{"A", ""}, []string{"A", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.missing, policy.MissingScopes(test.have, test.need)); diff != "" {
				t.Errorf("Granted (-want +got):\n%s", diff)
			}
		})
	}
}

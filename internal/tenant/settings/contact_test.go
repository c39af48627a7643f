package settings_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func TestOnListFindsTheCallsThatAddressSomebodyOnIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.list("src", as(`{"type":"object","properties":{"to":{"type":"string","format":"email"}}}`))
	long := strings.Repeat("x", settings.MaxRecipientBytes+1)
	calls := []string{`{"to":"bo@example.org"}`, `{"to":"ana@example.org"}`, `{}`, `{"to":"` + long + `"}`, `{"to":"ANA@example.org"}`}
	asked := 0
	find := func() map[int]contact.Match {
		var found map[int]contact.Match
		snap := s.snapshot()
		s.must(func(ctx context.Context, tx pgx.Tx) (err error) {
			found, err = snap.OnList(ctx, tx, len(calls), func(i int) (policy.Key, json.RawMessage) {
				asked++
				return policy.Key{Source: "src", Action: "act"}, json.RawMessage(calls[i])
			})
			return err
		})
		return found
	}

	none := find()
	before := asked
	s.must(func(ctx context.Context, tx pgx.Tx) error {
		_, err := contact.PutEntries(ctx, tx, s.tenant, []contact.Entry{{Value: "ana@example.org", Reason: "asked us"}}, "ada")
		return err
	})
	found := find()

	if len(none) != 0 || before != 0 {
		t.Errorf("without a list OnList() = %v and looked at %d calls", none, before)
	}
	ana := contact.Match{Kind: contact.Email, Reason: "asked us"}
	want := map[int]contact.Match{1: ana, 3: {Kind: contact.Handle, Reason: "more recipients than can be checked"}, 4: ana}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("OnList() (-want +got):\n%s", diff)
	}
}

func TestAToolWhoseSchemaIsNoneIsListedAndRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.list("src", as(`{"type":"nonsense"}`))

	src, _ := s.fresh("src")
	err := s.act().Check(json.RawMessage(`{}`))

	if src.LeftOut != 0 || !errors.Is(err, fault.Conflict) {
		t.Errorf("left out %d, Check() = %v, want none and fault.Conflict", src.LeftOut, err)
	}
}

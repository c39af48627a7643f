package retention_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

func TestSettingsReadBack(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s, other := c.tenant(), c.tenant()
	actions := func(days int, action retention.Action) retention.Setting {
		return retention.Setting{Kind: retention.Actions, Days: days, Action: action}
	}
	kept := retention.Status{Setting: retention.Setting{Kind: retention.Events, Days: 90, Action: retention.Report}}

	first := s.put(actions(30, retention.Delete))
	second := s.put(actions(9999, retention.Report))

	if diff := cmp.Diff([]retention.Setting{actions(90, retention.Report), actions(30, retention.Delete)}, []retention.Setting{first, second}); diff != "" {
		t.Errorf("what held before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]retention.Status{{Setting: actions(9999, retention.Report)}, kept}, s.list()); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]retention.Status{{Setting: actions(90, retention.Report)}, kept}, other.list()); diff != "" {
		t.Errorf("List of another tenant (-want +got):\n%s", diff)
	}
}

func TestInvalidSettingChangesNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t).tenant()
	before := s.list()
	for name, test := range map[string]struct {
		setting retention.Setting
		want    []string
	}{
		"no days":        {retention.Setting{Kind: retention.Actions, Days: 0, Action: retention.Delete}, []string{"/days"}},
		"too many days":  {retention.Setting{Kind: retention.Actions, Days: 36501, Action: retention.Delete}, []string{"/days"}},
		"unknown kind":   {retention.Setting{Kind: "mail", Days: 1, Action: retention.Delete}, []string{"/kind"}},
		"unknown action": {retention.Setting{Kind: retention.Events, Days: 1, Action: "burn"}, []string{"/action"}},
		"nothing":        {retention.Setting{}, []string{"/kind", "/days", "/action"}},
	} {
		err := s.as(func(ctx context.Context, tx pgx.Tx) error {
			_, err := retention.Put(ctx, tx, s.id, test.setting, "ada")
			return err
		})

		var got []string
		if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
			for _, f := range broken.Fields {
				got = append(got, f.Pointer)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: fields of %v (-want +got):\n%s", name, err, diff)
		}
	}
	if diff := cmp.Diff(before, s.list(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("settings changed (-was +is):\n%s", diff)
	}
}

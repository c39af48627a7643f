package envelope_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

func TestActorsOfOneNameDifferAndReadBack(t *testing.T) {
	t.Parallel()
	token, other, operator := uuid.New(), uuid.New(), uuid.New()
	forged := string(envelope.NewActor("ada", token, operator))

	seen := make(map[envelope.Actor]bool)
	for _, tt := range []struct {
		name            string
		token, operator uuid.UUID
	}{
		{"ada", token, operator}, {"ada", operator, operator}, {"ada", token, uuid.Nil}, {"ada", other, uuid.Nil}, {"ada", other, operator},
		{forged, other, uuid.Nil}, {forged, other, operator}, {"two\nlines", token, uuid.Nil}, {"", token, uuid.Nil},
		{"policy", token, uuid.Nil}, {"policy", uuid.Nil, uuid.Nil}, {"ada ()", uuid.Nil, uuid.Nil}, {"ada (, )", uuid.Nil, uuid.Nil}, {"worker/1", uuid.Nil, uuid.Nil},
	} {
		a := envelope.NewActor(tt.name, tt.token, tt.operator)

		name, gotToken, gotOperator := a.Parts()

		if name != tt.name || gotToken != tt.token || gotOperator != tt.operator {
			t.Errorf("Parts() of %q = %q, %s, %s", a, name, gotToken, gotOperator)
		}
		if seen[a] {
			t.Errorf("%q stands for two actors", a)
		}
		seen[a] = true
	}
}

func TestBriefShowsThePerson(t *testing.T) {
	t.Parallel()
	token, operator := uuid.New(), uuid.New()

	for a, want := range map[envelope.Actor]string{
		envelope.NewActor("ada", token, operator): "ada (" + operator.String() + ")",
		envelope.NewActor("bot", token, uuid.Nil): "bot (" + token.String() + ")",
		"policy": "policy",
	} {
		if got := a.Brief(); got != want {
			t.Errorf("%q.Brief() = %q, want %q", a, got, want)
		}
	}
}

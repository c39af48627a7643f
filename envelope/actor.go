package envelope

import (
	"fmt"
	"regexp"

	"github.com/google/uuid"
)

// Actor identifies who did something, in one form everywhere: in events, votes,
// exports, and the columns for actors. For the holder of a token it is the token's
// name, which is free text, followed by the ids that make it unambiguous:
//
//	ada's laptop (operator 0198c7a0-…, token 0198c7a1-…)
//	deploy bot (token 0198c7a2-…)
//	ada (operator 0198c7a0-…)
//
// The last is a person authenticated by an issuer or by Slack.
//
// Countersign itself has names without ids, such as "policy" or "worker/…". A
// token's name cannot imitate one: the last parentheses are always Countersign's
// own.
type Actor string

// NewActor returns the holder of a token: a person, if operator is not zero. A
// person without a token has the operator's id in its place.
func NewActor(name string, token, operator uuid.UUID) Actor {
	switch {
	case token == uuid.Nil:
		return Actor(name)
	case token == operator:
		return Actor(fmt.Sprintf("%s (operator %s)", name, operator))
	case operator == uuid.Nil:
		return Actor(fmt.Sprintf("%s (token %s)", name, token))
	}
	return Actor(fmt.Sprintf("%s (operator %s, token %s)", name, operator, token))
}

var actorIDs = regexp.MustCompile(`(?s)^(.*) \((?:operator ([0-9a-f-]{36}))?(?:, )?(?:token ([0-9a-f-]{36}))?\)$`)

// Parts returns the values that NewActor was given. An actor without ids has
// zero ones.
func (a Actor) Parts() (name string, token, operator uuid.UUID) {
	found := actorIDs.FindStringSubmatch(string(a))
	if found == nil {
		return string(a), uuid.Nil, uuid.Nil
	}
	operator, _ = uuid.Parse(found[2])
	if token, _ = uuid.Parse(found[3]); token == uuid.Nil {
		token = operator
	}
	if NewActor(found[1], token, operator) != a {
		return string(a), uuid.Nil, uuid.Nil
	}
	return found[1], token, operator
}

// Brief returns the name and the id of the person, or of the token if the person
// is unknown, for tables that people read: "name (id)".
func (a Actor) Brief() string {
	name, token, operator := a.Parts()
	switch {
	case operator != uuid.Nil:
		return fmt.Sprintf("%s (%s)", name, operator)
	case token != uuid.Nil:
		return fmt.Sprintf("%s (%s)", name, token)
	}
	return name
}

package envelope

import (
	"fmt"
	"regexp"

	"github.com/google/uuid"
)

// Actor is who did something, in one form everywhere: in events, votes, exports,
// and in every column that says who. For whoever shows a token it is the token's
// name, which is free text, and behind it the ids that tell two of one name apart:
//
//	ada's laptop (operator 0198c7a0-…, token 0198c7a1-…)
//	deploy bot (token 0198c7a2-…)
//	ada (operator 0198c7a0-…)
//
// The last is a person whom somebody else vouched for: an issuer, or Slack.
//
// What Countersign does by itself has a name without ids, such as "policy" or
// "worker/…". No name of a token can pass for one: the last parentheses are
// always Countersign's own.
type Actor string

// NewActor returns whoever showed a token: a person, if operator is not zero. A
// person who showed none has the operator's id in its place.
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

// Brief returns the name and the id of the person, or of the token if nobody said
// whose it is, for tables that people read: "name (id)".
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

package sentry

import (
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools.
const (
	// ToolIssueUpdate sets fields of an issue.
	ToolIssueUpdate = "sentry.issue.update"
	// ToolIssueGet reads an issue.
	ToolIssueGet = "sentry.issue.get"
	// ToolIssueList reads a page of issues.
	ToolIssueList = "sentry.issue.list"
)

const (
	issueID = `"issue_id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$","description":"The issue's id."}`

	schemaUpdate = `{"type":"object","properties":{` + issueID + `,
		"status":{"enum":["resolved","resolvedInNextRelease","unresolved","ignored"]},
		"statusDetails":{"type":"object","description":"With status, such as {\"inRelease\":\"1.2.0\"} or {\"ignoreDuration\":60} in minutes.","properties":{
			"inRelease":{"type":"string"},"inNextRelease":{"type":"boolean"},"inCommit":{"type":"string"},
			"ignoreDuration":{"type":"integer"},"ignoreCount":{"type":"integer"},"ignoreWindow":{"type":"integer"},
			"ignoreUserCount":{"type":"integer"},"ignoreUserWindow":{"type":"integer"}
		},"additionalProperties":false},
		"assignedTo":{"type":"string","description":"A user's id or name, or team:<slug>; empty for nobody."},
		"priority":{"enum":["low","medium","high"]},
		"hasSeen":{"type":"boolean"},
		"isBookmarked":{"type":"boolean"},
		"isSubscribed":{"type":"boolean"},
		"isPublic":{"type":"boolean"}
	},"required":["issue_id"],"minProperties":2,"additionalProperties":false}`

	schemaGet = `{"type":"object","properties":{` + issueID + `},"required":["issue_id"],"additionalProperties":false}`

	schemaList = `{"type":"object","properties":{
		"query":{"type":"string","description":"Sentry's search syntax; left out it is is:unresolved."},
		"project":{"type":"array","items":{"type":"integer"}},
		"environment":{"type":"string"},
		"statsPeriod":{"type":"string","pattern":"^[0-9]+[smhdw]$"},
		"sort":{"enum":["date","freq","inbox","new","trends","user"]},
		"limit":{"type":"integer","minimum":1,"maximum":100},
		"cursor":{"type":"string","description":"next_cursor of the page before."}
	},"additionalProperties":false}`

	schemaIssue = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`

	schemaPage = `{"type":"object","properties":{
		"issues":{"type":"array","items":{"type":"object"}},"next_cursor":{"type":"string"}
	},"required":["issues"]}`
)

func (a *api) tools() []rest.Tool {
	return []rest.Tool{
		{
			Name: ToolIssueUpdate, Title: "Triage an issue",
			Description: "Resolves, ignores, assigns or marks an issue; fields that are not given stay as they are.",
			Input:       schemaUpdate, Output: schemaIssue, Effect: envelope.EffectIdempotent, Destructive: true,
			Run: a.update,
		},
		{
			Name: ToolIssueGet, Title: "Read an issue",
			Description: "Reads one issue.",
			Input:       schemaGet, Output: schemaIssue, Effect: envelope.EffectRead,
			Run: a.get,
		},
		{
			Name: ToolIssueList, Title: "List issues",
			Description: "Reads a page of the organisation's issues.",
			Input:       schemaList, Output: schemaPage, Effect: envelope.EffectRead,
			Run: a.list,
		},
	}
}

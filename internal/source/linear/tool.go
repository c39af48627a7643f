package linear

import (
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools. Arguments carry the names of Linear's own inputs.
const (
	// ToolIssueCreate is issueCreate.
	ToolIssueCreate = "linear.issue.create"
	// ToolIssueUpdate is issueUpdate.
	ToolIssueUpdate = "linear.issue.update"
	// ToolIssueGet is issue.
	ToolIssueGet = "linear.issue.get"
	// ToolCommentCreate is commentCreate.
	ToolCommentCreate = "linear.comment.create"
	// ToolTeamList is teams.
	ToolTeamList = "linear.team.list"
)

// The operations. Each asks for one field, which is its answer.
const (
	queryIssue   = `query($id: String!) { issue(id: $id) { id identifier title url priority state { id name } assignee { id name } updatedAt } }`
	queryComment = `query($id: String!) { comment(id: $id) { id url } }`
	queryTeams   = `query($first: Int, $after: String) { teams(first: $first, after: $after) { nodes { id key name } pageInfo { hasNextPage endCursor } } }`

	mutateIssueCreate   = `mutation($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { id identifier url } } }`
	mutateIssueUpdate   = `mutation($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success issue { id identifier url } } }`
	mutateCommentCreate = `mutation($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { id url } } }`
)

const (
	// issueFields are what an issue may be created or updated with.
	issueFields = `
		"title":{"type":"string","minLength":1,"maxLength":512},
		"description":{"type":"string","description":"Markdown."},
		"assigneeId":{"type":["string","null"]},
		"stateId":{"type":"string"},
		"projectId":{"type":["string","null"]},
		"parentId":{"type":["string","null"]},
		"cycleId":{"type":["string","null"]},
		"dueDate":{"type":["string","null"],"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
		"estimate":{"type":["integer","null"],"minimum":0},
		"priority":{"type":"integer","minimum":0,"maximum":4,"description":"0 none, 1 urgent, 2 high, 3 medium, 4 low."},
		"labelIds":{"type":"array","items":{"type":"string"},"description":"All labels that the issue is to have."}`

	schemaIssueCreate = `{"type":"object","properties":{
		"teamId":{"type":"string","minLength":1},` + issueFields + `
	},"required":["teamId","title"],"additionalProperties":false}`

	schemaIssueUpdate = `{"type":"object","properties":{
		"id":{"type":"string","minLength":1,"description":"The issue's id, or its identifier such as ENG-123."},
		"teamId":{"type":"string","minLength":1},` + issueFields + `
	},"required":["id"],"minProperties":2,"additionalProperties":false}`

	schemaIssueGet = `{"type":"object","properties":{
		"id":{"type":"string","minLength":1,"description":"The issue's id, or its identifier such as ENG-123."}
	},"required":["id"],"additionalProperties":false}`

	schemaCommentCreate = `{"type":"object","properties":{
		"issueId":{"type":"string","minLength":1},
		"body":{"type":"string","minLength":1,"description":"Markdown."},
		"parentId":{"type":"string","minLength":1,"description":"The comment that this one answers."}
	},"required":["issueId","body"],"additionalProperties":false}`

	schemaTeamList = `{"type":"object","properties":{
		"first":{"type":"integer","minimum":1,"maximum":250},
		"after":{"type":"string"}
	},"additionalProperties":false}`

	schemaEntity = `{"type":"object","properties":{
		"id":{"type":"string"},"identifier":{"type":"string"},"url":{"type":"string"}
	},"required":["id"]}`

	schemaTeams = `{"type":"object","properties":{
		"nodes":{"type":"array","items":{"type":"object"}},"pageInfo":{"type":"object"}
	},"required":["nodes"]}`
)

func (a *api) tools() []rest.Tool {
	return []rest.Tool{
		{
			Name: ToolIssueCreate, Title: "Create an issue",
			Description: "Creates an issue in a team.",
			Input:       schemaIssueCreate, Output: schemaEntity, Effect: envelope.EffectKeyed,
			Run: a.create(mutateIssueCreate, queryIssue),
		},
		{
			Name: ToolIssueUpdate, Title: "Change an issue",
			Description: "Sets fields of an issue; those that are not given stay as they are.",
			Input:       schemaIssueUpdate, Output: schemaEntity, Effect: envelope.EffectIdempotent, Destructive: true,
			Run: a.update(mutateIssueUpdate),
		},
		{
			Name: ToolIssueGet, Title: "Read an issue",
			Description: "Reads one issue.",
			Input:       schemaIssueGet, Output: schemaEntity, Effect: envelope.EffectRead,
			Run: a.read(queryIssue),
		},
		{
			Name: ToolCommentCreate, Title: "Comment on an issue",
			Description: "Adds a comment to an issue.",
			Input:       schemaCommentCreate, Output: schemaEntity, Effect: envelope.EffectKeyed,
			Run: a.create(mutateCommentCreate, queryComment),
		},
		{
			Name: ToolTeamList, Title: "List teams",
			Description: "Lists the teams that issues can be created in.",
			Input:       schemaTeamList, Output: schemaTeams, Effect: envelope.EffectRead,
			Run: a.read(queryTeams),
		},
	}
}

package linear

import (
	_ "embed"
)

// The tools. Arguments have the names of Linear's inputs.
const (
	// ToolIssueCreate runs the mutation issueCreate.
	ToolIssueCreate = "linear.issue.create"
	// ToolIssueUpdate runs the mutation issueUpdate.
	ToolIssueUpdate = "linear.issue.update"
	// ToolIssueGet runs the query issue.
	ToolIssueGet = "linear.issue.get"
	// ToolCommentCreate runs the mutation commentCreate.
	ToolCommentCreate = "linear.comment.create"
	// ToolTeamList runs the query teams.
	ToolTeamList = "linear.team.list"
)

// The operations. Each has one field, which is its answer.
const (
	queryIssue   = `query($id: String!) { issue(id: $id) { id identifier title url priority state { id name } assignee { id name } updatedAt } }`
	queryComment = `query($id: String!) { comment(id: $id) { id url } }`
	queryTeams   = `query($first: Int, $after: String) { teams(first: $first, after: $after) { nodes { id key name } pageInfo { hasNextPage endCursor } } }`

	mutateIssueCreate   = `mutation($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { id identifier url } } }`
	mutateIssueUpdate   = `mutation($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success issue { id identifier url } } }`
	mutateCommentCreate = `mutation($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { id url } } }`
)

// document defines the tools.
//
//go:embed tools.json
var document []byte

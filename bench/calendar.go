package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// calendarSource is the source of the tool whose calls the page shows.
const calendarSource = "calendar"

// calendarSchema is a schema as calendars have it.
const calendarSchema = `{"type":"object","required":["calendarId","summary","start","end"],"properties":{
"calendarId":{"type":"string","description":"ID of the calendar"},
"summary":{"type":"string","title":"Summary","description":"Title of the event"},
"description":{"type":"string","description":"Notes of the event"},
"location":{"type":"object","properties":{"name":{"type":"string"},"address":{"type":"object","properties":{
	"street":{"type":"string"},"city":{"type":"string"},"geo":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}}}}}}},
"start":{"type":"object","properties":{"dateTime":{"type":"string","format":"date-time"},"timeZone":{"type":"string"}}},
"end":{"type":"object","properties":{"dateTime":{"type":"string","format":"date-time"},"timeZone":{"type":"string"}}},
"attendees":{"type":"array","items":{"type":"object","required":["email"],"properties":{
	"email":{"type":"string","format":"email"},"displayName":{"type":"string"},"optional":{"type":"boolean"},
	"responseStatus":{"enum":["needsAction","declined","tentative","accepted"]}}}},
"reminders":{"type":"object","properties":{"useDefault":{"type":"boolean"},"overrides":{"type":"array","items":{
	"type":"object","properties":{"method":{"enum":["email","popup"]},"minutes":{"type":"integer"}}}}}},
"recurrence":{"type":"array","items":{"type":"string"}},
"sendUpdates":{"enum":["all","externalOnly","none"],"description":"Who is notified"},
"visibility":{"enum":["default","public","private"]}}}`

// calendarServer is an MCP server of one tool, which does nothing.
func calendarServer() *httptest.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: calendarSource, Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "create_event", Title: "Create event", Description: "Creates an event and invites its attendees.", InputSchema: json.RawMessage(calendarSchema)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
}

// calendarCall is the proposal of an event, with a text unless that is empty.
func calendarCall(n int, text string) []byte {
	if text == "" {
		text = fmt.Sprintf("Agenda: the budget of project %d, the plan until autumn, and who writes to the supplier.", n)
	}
	return fmt.Appendf(nil, `{"type":"mcp.exec","external_id":"event-%[1]d","tool":{"name":"create_event","source":"`+calendarSource+`"},"args":{
"calendarId":"team-%[1]d@group.calendar.example","summary":"Review of project %[1]d","description":%[2]q,
"location":{"name":"Room %[1]d","address":{"street":"Main Street %[1]d","city":"Linz","geo":{"lat":48.30639,"lon":14.28611}}},
"start":{"dateTime":"2027-03-05T09:00:00+01:00","timeZone":"Europe/Vienna"},"end":{"dateTime":"2027-03-05T10:30:00+01:00","timeZone":"Europe/Vienna"},
"attendees":[{"email":"ana.lima@example.org","displayName":"Ana Lima","optional":false,"responseStatus":"accepted"},
{"email":"bo.chen-%[1]d@example.net","displayName":"Bo Chen","optional":true,"responseStatus":"needsAction"},
{"email":"mila@work.example","displayName":"Mila Okoro","optional":false,"responseStatus":"needsAction"}],
"reminders":{"useDefault":false,"overrides":[{"method":"email","minutes":1440},{"method":"popup","minutes":10}]},
"recurrence":["RRULE:FREQ=WEEKLY;COUNT=4"],"sendUpdates":"all","visibility":"private"}}`, n, text)
}

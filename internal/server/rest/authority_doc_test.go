package rest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/rest/route"
)

// TestAuthorityIsDocumented compares docs/reference/loosening.md and
// docs/authority.md with the table of routes: every operation that changes something
// is in the table of loosening changes, in the list for operators, or configures
// nothing that policy depends on.
func TestAuthorityIsDocumented(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]bool{
		// Proposals and decisions.
		"submitAction": true, "submitActions": true, "invokeTool": true, "submitWorkflow": true, "cancelWorkflow": true, "undoAction": true, "revertAction": true, "revertActions": true, "undoTriage": true,
		"approveAction": true, "denyAction": true, "editAction": true, "approveActions": true, "denyActions": true, "respondToAction": true, "acknowledgeInbox": true, "slackInteraction": true,
		// Failed actions.
		"retryWorkflow": true, "resolveWorkflow": true, "resolveDeadLetter": true, "replayDeadLetters": true, "resendDelivery": true, "discardDeadLetters": true,
		// Accounts, whose rules are in identities.md and clients.md.
		"revokeToken": true, "narrowToken": true, "createOperator": true, "putProvider": true, "deleteProvider": true,
		"openSession": true, "showLoginCode": true, "touchSession": true, "closeSession": true, "createLoginCode": true, "endMySession": true, "endSession": true, "showProgramRequest": true, "consentToProgram": true,
		// Neither reads nor changes of policy.
		"explainPolicy": true, "checkRule": true, "previewAlways": true, "simulatePolicy": true, "refreshSource": true, "testSubscription": true, "putRetention": true, "recoverDatabase": true, "noteHead": true, "askTriageRun": true, "retryTriageSetAside": true, "purgeTriageAccount": true, "previewTriageSettings": true, "correctTriageMessage": true, "askTriageText": true, "retractTriageCorrection": true,
		"previewQuietHours": true, "checkDoNotContact": true,
		"setTriageTag": true, "removeTriageTag": true, "retryTriageTag": true, "retryAction": true,
		"changeTriageFollowUp": true, "tryTriageLabel": true, "putTriageLabel": true, "deleteTriageLabel": true, "judgeTriageLabel": true,
	}
	named := make(map[string]bool)
	for _, page := range []string{"reference/loosening.md", "authority.md"} {
		text, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("`([a-z]+[A-Z]?[A-Za-z]*)`").FindAllStringSubmatch(string(text), -1) {
			named[found[1]] = true
		}
	}
	tools := toolRoutes()
	for _, rt := range route.Access() {
		if strings.HasPrefix(rt.Pattern, "GET ") {
			continue
		}
		if elsewhere[rt.Operation] == named[rt.Operation] {
			t.Errorf("%s is on the page: %t, and listed here as something else: %t; want one of them", rt.Operation, named[rt.Operation], elsewhere[rt.Operation])
		}
		if tools[rt.Operation] == "configures" && !named[rt.Operation] {
			t.Errorf("%s configures tools, and is not on the page", rt.Operation)
		}
	}
}

package brief

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of a brief.
type Kind string

// The kinds.
const (
	Morning Kind = "morning"
	Evening Kind = "evening"
)

// Settings are the settings of the briefs about an account.
type Settings struct {
	// Zone is the IANA name of the owner's zone.
	Zone string `json:"zone"`
	// Morning and Evening are times of day, as 07:30; "" is none.
	Morning string `json:"morning,omitempty"`
	Evening string `json:"evening,omitempty"`
	// ShowMail shows senders and subjects.
	ShowMail bool `json:"show_mail,omitempty"`
	// ArchivingCloses closes a follow-up whose message its owner archives or deletes.
	ArchivingCloses bool `json:"archiving_closes,omitempty"`
	// Calendar is the source of kind dav with the calendar; "" is none.
	Calendar string `json:"calendar,omitempty"`
	// Alerts sends urgent mail to the channels at once.
	Alerts bool `json:"alerts,omitempty"`
	// Channels are where briefs are sent.
	Channels []Channel `json:"channels,omitempty"`
}

// Channel is where briefs are sent: an address of the owner, or a source of kind slack.
type Channel struct {
	// To is one of the account's own addresses.
	To string `json:"to,omitempty"`
	// Source is the source of kind slack, and Channel a channel; without one, the
	// source's webhook.
	Source  string `json:"source,omitempty"`
	Channel string `json:"channel,omitempty"`
}

// The tools that send briefs.
const (
	ToolMail    = "message.brief"
	ToolSlack   = "slack.message.send"
	ToolWebhook = "slack.webhook.send"
)

// Tool returns the tool that sends a brief to the channel.
func (c Channel) Tool() string {
	switch {
	case c.To != "":
		return ToolMail
	case c.Channel != "":
		return ToolSlack
	}
	return ToolWebhook
}

// maxChannels bounds the channels of an account.
const maxChannels = 5

// Check returns an error if the settings are invalid. own are the account's addresses.
func (s Settings) Check(own []string) error {
	if _, err := time.LoadLocation(s.Zone); err != nil || s.Zone == "" || s.Zone == "Local" {
		return errors.New("the zone of the briefs must be an IANA name, such as Europe/Berlin")
	}
	for _, at := range []string{s.Morning, s.Evening} {
		if _, err := time.Parse(clock, at); err != nil && at != "" {
			return errors.New("a time of the briefs must be like 07:30")
		}
	}
	if s.Morning != "" && s.Morning == s.Evening {
		return errors.New("the morning brief and the evening brief need different times")
	}
	if len(s.Calendar) > 100 || len(s.Channels) > maxChannels {
		return fmt.Errorf("briefs have one calendar, by the name of its source, and at most %d channels", maxChannels)
	}
	for i, c := range s.Channels {
		switch {
		case slices.Contains(s.Channels[:i], c):
			return errors.New("a channel of the briefs is listed twice")
		case c.To != "" && (c.Source != "" || c.Channel != "" || !isOwn(own, c.To)):
			return errors.New("briefs are mailed to the addresses in the account's settings alone")
		case c.To == "" && (c.Source == "" || len(c.Source) > 100 || len(c.Channel) > 100):
			return errors.New("a channel of the briefs needs one of the account's addresses, or a source of kind slack")
		}
	}
	return nil
}

func isOwn(own []string, to string) bool {
	return slices.ContainsFunc(own, func(a string) bool { return strings.EqualFold(a, to) })
}

// clock is the format of a time of day.
const clock = "15:04"

// Location returns the zone, or UTC for an unknown one.
func Location(zone string) *time.Location {
	if found, err := time.LoadLocation(zone); err == nil && zone != "Local" {
		return found
	}
	return time.UTC
}

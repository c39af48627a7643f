package discover

import (
	"bytes"
	"encoding/xml"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// appleMail reads the accounts of Apple Mail, as far as they are in property lists:
// of each version of its folder, and of its preferences.
func appleMail(s *search) {
	const program = "apple mail"
	files, err := fs.Glob(s.Home, "Library/Mail/V*/MailData/Accounts.plist")
	if err != nil {
		return
	}
	slices.Reverse(files) // the newest version first
	for _, name := range append(files, "Library/Preferences/com.apple.mail.plist") {
		raw := s.read(program, name)
		switch {
		case raw == nil:
			continue
		case bytes.HasPrefix(raw, []byte("bplist")):
			s.skip(Origin{Program: program, File: name}, "is binary; plutil -convert xml1 -o - shows it")
			continue
		}
		root, err := plist(raw)
		if err != nil {
			s.skip(Origin{Program: program, File: name}, "is not a property list")
			continue
		}
		top, _ := root.(map[string]any)
		smtp := make(map[string]Server)
		for _, of := range list(top["DeliveryAccounts"]) {
			smtp[text(of["Hostname"])+":"+text(of["Username"])] = Server{text(of["Hostname"]), port(text(of["PortNumber"])), starttls(text(of["SSLEnabled"]))}
		}
		for i, of := range list(top["MailAccounts"]) {
			f := Finding{Kind: Address, User: text(of["Username"]), SMTP: smtp[text(of["SMTPIdentifier"])]}
			if addresses, _ := of["EmailAddresses"].([]any); len(addresses) > 0 {
				f.Address = text(addresses[0])
			}
			switch kind := text(of["AccountType"]); {
			case kind == "IMAPAccount" || kind == "GmailAccount" || kind == "iToolsAccount":
				f.Kind = IMAP
				f.Server = Server{text(of["Hostname"]), port(text(of["PortNumber"])), Plain}
				if text(of["SSLEnabled"]) == "true" || text(of["SSLEnabled"]) == "YES" {
					f.Server.Security = TLS
				}
				f.OAuth = strings.Contains(text(of["AuthenticationScheme"]), "OAUTH")
			case kind == "":
				continue
			}
			s.add(f, Origin{program, name, "MailAccounts:" + strconv.Itoa(i)})
		}
	}
}

func starttls(enabled string) Security {
	if enabled == "true" || enabled == "YES" {
		return StartTLS
	}
	return Plain
}

// list returns the dictionaries of a list.
func list(v any) []map[string]any {
	values, _ := v.([]any)
	var all []map[string]any
	for _, v := range values {
		if of, ok := v.(map[string]any); ok {
			all = append(all, of)
		}
	}
	return all
}

// text returns a text; "" for other values.
func text(v any) string {
	t, _ := v.(string)
	return t
}

// plist parses a property list in XML. Numbers, dates and booleans are texts.
func plist(raw []byte) (any, error) {
	d := xml.NewDecoder(bytes.NewReader(raw))
	d.Strict = false
	for {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local != "plist" {
			return element(d, start, 0)
		}
	}
}

// maxDepth bounds how deep a property list is nested.
const maxDepth = 50

func element(d *xml.Decoder, start xml.StartElement, depth int) (any, error) {
	if depth > maxDepth {
		return nil, io.ErrUnexpectedEOF
	}
	switch start.Name.Local {
	case "dict", "array":
	case "true", "false":
		return start.Name.Local, d.Skip()
	default:
		var value string
		err := d.DecodeElement(&value, &start)
		return value, err
	}
	dict, array, key := make(map[string]any), []any{}, ""
	for {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch at := token.(type) {
		case xml.EndElement:
			if start.Name.Local == "dict" {
				return dict, nil
			}
			return array, nil
		case xml.StartElement:
			value, err := element(d, at, depth+1)
			if err != nil {
				return nil, err
			}
			if at.Name.Local == "key" {
				key = text(value)
				continue
			}
			dict[key] = value
			array = append(array, value)
		}
	}
}

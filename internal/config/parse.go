package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

func text(to *string) func(string) error {
	return func(text string) error {
		*to = text
		return nil
	}
}

func databaseID(to *uuid.UUID) func(string) error {
	return func(text string) (err error) {
		if *to, err = uuid.Parse(text); err != nil {
			return errors.New("must be the UUID that countersign recover prints")
		}
		return nil
	}
}

func boolean(to *bool) func(string) error {
	return func(text string) (err error) {
		if *to, err = strconv.ParseBool(text); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	}
}

// number parses a number from least to most.
func number[N int | int32](to *N, least, most N) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < int64(least) || n > int64(most) {
			return fmt.Errorf("must be a number from %d to %d", least, most)
		}
		*to = N(n)
		return nil
	}
}

// duration parses a duration from least to most.
func duration(to *time.Duration, least, most time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return fmt.Errorf("must be a duration from %s to %s, such as 90s", least, most)
		}
		*to = d
		return nil
	}
}

func level(to *slog.Level) func(string) error {
	return func(text string) error {
		if err := to.UnmarshalText([]byte(text)); err != nil {
			return errors.New("must be debug, info, warn or error")
		}
		return nil
	}
}

// address parses host:port or :port.
func address(to *string) func(string) error {
	return func(text string) error {
		if _, _, err := net.SplitHostPort(text); err != nil {
			return errors.New("must be host:port or :port, such as :9090")
		}
		*to = text
		return nil
	}
}

// origin parses an https address without a path, or an http one of this machine.
func origin(to *string) func(string) error {
	return func(text string) error {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil || u.Host == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" || u.ForceQuery ||
			!safehttp.Protected(u) {
			return errors.New("must be an https address without a path, such as https://countersign.acme.com; on this machine it may be http")
		}
		*to = u.String()
		return nil
	}
}

func collector(to *string) func(string) error {
	return func(text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("must be an http or https URL, such as http://collector:4318")
		}
		*to = text
		return nil
	}
}

// hostOf returns the host of a URL that may contain a password.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

func database(to *string) func(string) error {
	return func(text string) error {
		if _, err := pgxpool.ParseConfig(text); err != nil { // its text may hold the password
			return errors.New("must be a PostgreSQL connection string: " + databaseForm)
		}
		*to = text
		return nil
	}
}

// databaseOf returns the host, port and name of a database.
func databaseOf(text string) string {
	pc, err := pgxpool.ParseConfig(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s:%d/%s", pc.ConnConfig.Host, pc.ConnConfig.Port, pc.ConnConfig.Database)
}

// secretKey parses 32 bytes in base64, and keeps the text.
func secretKey(to *string) func(string) error {
	return func(text string) error {
		if raw, err := base64.StdEncoding.DecodeString(text); err != nil || len(raw) != 32 {
			return errors.New("must be 32 bytes in base64; make one with: openssl rand -base64 32")
		}
		*to = text
		return nil
	}
}

// isSet returns the text that replaces a secret in logs.
func isSet(text string) string { return strconv.FormatBool(text != "") }

func networks(to *[]netip.Prefix) func(string) error {
	return func(text string) (err error) {
		if *to, err = ParseNetworks(text); err != nil {
			return errors.New("must be addresses or networks, separated by commas, such as 10.0.0.0/8, 192.0.2.7")
		}
		return nil
	}
}

// file parses an absolute path.
func file(to *string) func(string) error {
	return func(text string) error {
		if !filepath.IsAbs(text) {
			return errors.New("must be the absolute path of a file, such as /etc/countersign/models.yaml")
		}
		*to = filepath.Clean(text)
		return nil
	}
}

func folders(to *[]string) func(string) error {
	return func(text string) error {
		var all []string
		for _, folder := range strings.Split(text, ",") {
			folder = strings.TrimSpace(folder)
			if !filepath.IsAbs(folder) {
				return errors.New("must be absolute paths of folders, separated by commas, such as /var/mail")
			}
			all = append(all, filepath.Clean(folder))
		}
		*to = all
		return nil
	}
}

// ParseNetworks parses addresses and networks separated by commas or spaces,
// such as "10.0.0.0/8, 192.0.2.7".
func ParseNetworks(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		network, err := netip.ParsePrefix(part)
		if !strings.Contains(part, "/") {
			var single netip.Addr
			single, err = netip.ParseAddr(part)
			single = single.Unmap()
			network = netip.PrefixFrom(single, single.BitLen())
		}
		if err != nil {
			return nil, err
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

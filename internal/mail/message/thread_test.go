package message_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

func TestThreadSubject(t *testing.T) {
	t.Parallel()

	for subject, want := range map[string]string{
		"Painting the fence":                    "painting the fence",
		"Re: Painting the  fence ":              "painting the fence",
		"RE: AW: Fwd: WG: Painting the fence":   "painting the fence",
		"Re[2]: Painting the fence":             "painting the fence",
		"TR : Rv: SV: VS: painting the fence":   "painting the fence",
		"Re: [garden] Re: Painting the fence":   "painting the fence",
		"回复：Painting the fence":                 "painting the fence",
		"Re\u200b: Ｐainting the fence":          "painting the fence",
		"Report: painting":                      "report: painting",
		"[garden]":                              "[garden]",
		"Re:":                                   "",
		"12: the clock":                         "12: the clock",
		"Remember the fence: it is to be green": "remember the fence: it is to be green",
	} {
		if got := message.ThreadSubject(subject); got != want {
			t.Errorf("ThreadSubject(%q) = %q, want %q", subject, got, want)
		}
	}
}

func TestParseLanguage(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"ok thx": "",
		"The fence is painted and the gate will be done on Friday, if you have the time.":     "en",
		"Der Zaun ist gestrichen, und das Tor machen wir am Freitag, wenn Sie Zeit haben.":    "de",
		"Pouvez-vous nous dire si la clôture est peinte et quand vous passerez pour la porte": "fr",
		"La valla ya está pintada, y la puerta la haremos el viernes si usted tiene tiempo.":  "es",
		"Здравствуйте! Забор уже покрашен, а ворота мы хотели бы сделать в эту пятницу, если у вас будет время. Что вы об этом думаете?": "ru",
		"Płot jest już pomalowany, a bramę zrobimy w piątek, jeśli będzie pan miał na to czas.":                                          "pl",
		"フェンスの塗装が終わりました。門は金曜日に行います。よろしくお願いします。":                                                                                          "ja",
		"xqzt wvvb kkpl mmnr ttrw zzpl qwrt mnbv lkjh gfds poiu":                                                                         "",
		"Hej! Stängslet är målat och grinden gör vi på fredag, om du har tid att komma till oss.":                                        "sv",
		"Il cancello è stato verniciato e la porta sarà pronta venerdì, se avete tempo.":                                                 "it",
	} {
		if m := message.Parse([]byte("From: a@example.org\nContent-Type: text/plain; charset=utf-8\n\n" + text)); m.Language != want {
			t.Errorf("the language of %q is %q, want %q", text, m.Language, want)
		}
	}
}

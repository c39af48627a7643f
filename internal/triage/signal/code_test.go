package signal_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/signal"
)

func TestOneTimeCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Your verification code is 482913.":                                      "482913",
		"Your verification code is: 482 913":                                     "482913",
		"G-482913 is your Google verification code":                              "482913",
		"Use 4829 to log in. It is your login code.":                             "4829",
		"Enter this code to continue:\n\n   7F3K9Q\n\nIt expires in 10 minutes.": "7F3K9Q",
		"Your one-time password (OTP): 00412":                                    "00412",
		"Your Slack confirmation code: ABC-DEF":                                  "ABCDEF",
		"Ihr Bestätigungscode lautet 339184":                                     "339184",
		"Ihr Einmalcode: 5521":                                                   "5521",
		"Votre code de vérification est 220981":                                  "220981",
		"Tu código de verificación es 771203":                                    "771203",
		"Votre code de confirmation est le 55 82 10. Ne le donnez à personne.":   "558210",
		"Ihr Aktivierungscode lautet 8RT4-QK2M.":                                 "8RT4QK2M",
		"Votre code de confirmation : appelez le 06 12 34 56 78":                 "",
		"Il tuo codice di verifica: 883120":                                      "883120",
		"Your security code: 2024":                                               "2024",
		"Your access code\n\n9 1 2 2":                                            "",
		"Your verification code will arrive by telephone, +49 30 123456":         "",
		"Enter the verification code. Questions? Call (030) 482913":              "",
		"We never ask for your verification code. Copyright 2026 Shop":           "",
		"Your security code protects you. Order #482913 was shipped":             "",
		"Your login code expires in 1440 minutes":                                "",
		"Use discount code SAVE20 today":                                         "",
		"Your promo code is 99887":                                               "",
		"The source code is 4829 lines long":                                     "",
		"Your access code costs 4829 EUR":                                        "",
		"Your zip code is 10115":                                                 "",
		"See you at 10:30 on 2026-05-04":                                         "",
		"The tracking number is 482913":                                          "",
		"Your verification code was used on 12.05.2026":                          "",
		"Your verification code\nPLEASE\n":                                       "",
		"":                                                                       "",
	} {
		m := mail("a@shop.example | Hello | " + text)

		r := signal.Find(m, signal.Context{})

		if r.Code != want || r.Has(signal.OneTimeCode) != (want != "") {
			t.Errorf("code of %q is %q, want %q", text, r.Code, want)
		}
	}
}

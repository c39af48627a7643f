package message_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

func TestForeignLanguagesAreDetected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ foreign, familiar bool }{
		"Your order has been dispatched and will arrive on Friday with the other parcel.": {false, true},
		"Order 17 dispatched": {false, true},
		"Stops of the tour: Toronto, Chicago, Santa Barbara, Atlanta, Sacramento and Tacoma.":                                     {false, true},
		"Bring the camera and the radio, or see the photo and video data in the media studio.":                                    {false, true},
		"We met at a café in Zürich, and Müller paid the bill.":                                                                   {false, true},
		"Die Lieferung wird heute gesperrt, wenn du die Rechnung nicht freigibst. Kannst du das bitte sofort erledigen?":          {true, true},
		"Bonjour, le serveur de paie est en panne depuis ce matin et personne ne peut valider les salaires avant ce soir.":        {true, true},
		"Falta la firma de Lucas para la excursión del día veinte, y el autobús sale el viernes por la mañana.":                   {true, true},
		"Proszę o potwierdzenie zamówienia do jutra rana, bo inaczej dostawa zostanie wstrzymana i magazyn nie wyda towaru.":      {true, true},
		"本日中に契約書にご署名ください。間に合わない場合は取引が中止されます。":                                                                                     {true, true},
		"Por favor confirme a encomenda até amanhã, senão o fornecedor cancela a entrega e o armazém fica sem nada.":              {true, true},
		"La preghiamo di confermare l'ordine entro domani, altrimenti la consegna viene annullata e non possiamo fare nulla.":     {true, true},
		"请在今天下午之前确认付款，否则合同将被取消，公司也会受到损失。":                                                                                         {true, false},
		"내일 아침까지 결제를 확인해 주세요. 그렇지 않으면 계약이 취소됩니다.":                                                                                 {true, false},
		"Срочно подтвердите оплату до завтрашнего утра, иначе договор будет расторгнут.":                                          {true, false},
		"Mohon segera konfirmasi pembayaran sebelum besok pagi, jika tidak kontrak akan dibatalkan oleh perusahaan kami hari ini": {true, false},
		"Tafadhali thibitisha malipo kabla ya kesho asubuhi la sivyo mkataba utafutwa na kampuni yetu haitaweza kuendelea.":       {true, false},
	} {
		if got := message.Foreign(text); got != want.foreign {
			t.Errorf("Foreign(%q) = %v, want %v", text, got, want.foreign)
		}
		if got := message.Familiar(text); got != want.familiar {
			t.Errorf("Familiar(%q) = %v, want %v", text, got, want.familiar)
		}
	}
}

// TestMoreTextRemovesNoLanguage adds lines of English between any words of
// another language.
func TestMoreTextRemovesNoLanguage(t *testing.T) {
	t.Parallel()
	foreign := []string{
		"Proszę o potwierdzenie zamówienia do jutra.", "Die Lieferung wird heute gesperrt, wenn du nicht antwortest.",
		"Il contratto non è firmato, e che la banca chiude alle quattro.", "本日中に契約書に ご署名ください。",
		"La preghiamo di confermare l'ordine entro domani, altrimenti la consegna viene annullata e non possiamo fare nulla.",
		"Tafadhali thibitisha malipo kabla ya kesho asubuhi la sivyo mkataba utafutwa na kampuni yetu.",
		"Mohon segera konfirmasi pembayaran sebelum besok pagi, jika tidak kontrak akan dibatalkan oleh perusahaan kami hari ini",
	}
	english := []string{"This is the news of the week, and there is more of it on our site.", "Read it all.", "", "Ten plants for a dry summer"}

	rapid.Check(t, func(t *rapid.T) {
		words := strings.Fields(rapid.SampledFrom(foreign).Draw(t, "foreign"))
		lines := rapid.SliceOfN(rapid.SampledFrom(english), 0, 9).Draw(t, "english")
		var text strings.Builder
		for _, line := range lines {
			at := rapid.IntRange(0, len(words)).Draw(t, "place")
			text.WriteString(strings.Join(words[:at], " ") + "\n" + line + "\n")
			words = words[at:]
		}
		text.WriteString(strings.Join(words, " "))

		if !message.Foreign(text.String()) {
			t.Errorf("Foreign(%q) = false", text.String())
		}
	})
}

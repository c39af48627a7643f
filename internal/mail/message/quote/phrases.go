package quote

type field int

const (
	fieldFrom field = iota
	fieldDate
	// fieldSent is a date under a name that only mail uses.
	fieldSent
	fieldTo
	fieldSubject
	fieldCopy
	fields
)

// fieldNames are the names of header fields in mail programs.
var fieldNames = map[string]field{
	"from": fieldFrom, "von": fieldFrom, "de": fieldFrom, "da": fieldFrom, "van": fieldFrom, "fra": fieldFrom,
	"från": fieldFrom, "od": fieldFrom, "от": fieldFrom, "от кого": fieldFrom, "kimden": fieldFrom, "发件人": fieldFrom,
	"寄件者": fieldFrom, "差出人": fieldFrom, "lähettäjä": fieldFrom, "feladó": fieldFrom, "보낸 사람": fieldFrom,
	"expéditeur": fieldFrom, "mittente": fieldFrom, "remitente": fieldFrom, "absender": fieldFrom,
	"sent": fieldSent, "date": fieldDate, "gesendet": fieldSent, "datum": fieldDate, "envoyé": fieldSent,
	"enviado": fieldSent, "enviado el": fieldSent, "enviada em": fieldSent, "fecha": fieldDate, "inviato": fieldSent,
	"data": fieldDate, "verzonden": fieldSent, "sendt": fieldSent, "skickat": fieldSent, "wysłano": fieldSent,
	"дата": fieldDate, "отправлено": fieldSent, "发送时间": fieldSent, "日期": fieldDate, "送信日時": fieldSent,
	"lähetetty": fieldSent, "elküldve": fieldSent, "odesláno": fieldSent, "dato": fieldDate, "tarih": fieldDate,
	"to": fieldTo, "an": fieldTo, "à": fieldTo, "para": fieldTo, "a": fieldTo, "aan": fieldTo, "til": fieldTo,
	"till": fieldTo, "do": fieldTo, "кому": fieldTo, "kime": fieldTo, "收件人": fieldTo, "宛先": fieldTo,
	"vastaanottaja": fieldTo, "címzett": fieldTo, "komu": fieldTo, "받는 사람": fieldTo, "destinataire": fieldTo,
	"subject": fieldSubject, "betreff": fieldSubject, "objet": fieldSubject, "asunto": fieldSubject,
	"oggetto": fieldSubject, "assunto": fieldSubject, "onderwerp": fieldSubject, "emne": fieldSubject,
	"ämne": fieldSubject, "temat": fieldSubject, "тема": fieldSubject, "konu": fieldSubject, "主题": fieldSubject,
	"主旨": fieldSubject, "件名": fieldSubject, "aihe": fieldSubject, "tárgy": fieldSubject, "předmět": fieldSubject,
	"제목": fieldSubject,
	"cc": fieldCopy, "kopie": fieldCopy, "copie": fieldCopy, "copia": fieldCopy, "importance": fieldCopy,
	"reply-to": fieldCopy, "attachments": fieldCopy,
}

// verbs are the verbs of attributions.
var verbs = []string{
	"wrote", "writes", "schrieb", "a écrit", "escribió", "escribio", "ha scritto", "escreveu", "schreef", "skrev", "skreiv",
	"napisał", "napisał(a)", "napisała", "пишет", "писал", "написал", "написал(а)", "написала", "kirjoitti", "írta",
	"yazdı", "napsal", "napsal(a)", "napísal", "a scris", "έγραψε", "写道", "寫道", "のメール", "さんは書きました", "작성",
	"schreiben", "escrigué", "va escriure", "idatzi zuen",
}

// openers are the first words of attributions.
var openers = map[string]bool{
	"on": true, "am": true, "le": true, "el": true, "il": true, "em": true, "op": true, "den": true, "w": true,
	"dnia": true, "в": true, "vào": true, "pada": true, "på": true, "a": true, "dne": true, "at": true, "mon": true,
	"tue": true, "wed": true, "thu": true, "fri": true, "sat": true, "sun": true, "monday": true, "tuesday": true,
	"wednesday": true, "thursday": true, "friday": true, "saturday": true, "sunday": true, "mo": true, "di": true,
	"mi": true, "do": true, "fr": true, "sa": true, "so": true, "lun": true, "mar": true, "mer": true, "jeu": true,
	"ven": true, "sam": true, "dim": true, "пн": true, "вт": true, "ср": true, "чт": true, "пт": true, "сб": true,
	"вс": true, "понедельник": true, "вторник": true, "среда": true, "четверг": true, "пятница": true,
	"суббота": true, "воскресенье": true, "quoting": true, "zitat": true, "citando": true, "mié": true, "jue": true,
	"vie": true, "sáb": true, "dom": true, "ter": true, "qua": true, "qui": true, "sex": true, "ke": true, "ti": true,
	"to": true, "ma": true, "za": true, "zo": true, "2.": true, "selon": true,
}

// separators are the texts that mail programs write into the line above an
// earlier message.
var separators = []string{
	"original message", "original appointment", "forwarded message", "forwarded by", "begin forwarded message",
	"ursprüngliche nachricht", "originalnachricht", "original-nachricht", "weitergeleitete nachricht",
	"anfang der weitergeleiteten", "message d'origine", "message original", "message initial", "message transféré",
	"début du message", "mensaje original", "mensaje reenviado", "messaggio originale", "messaggio inoltrato",
	"mensagem original", "mensagem encaminhada", "oorspronkelijk bericht", "doorgestuurd bericht", "oprindelig meddelelse",
	"opprinnelig melding", "ursprungligt meddelande", "originalmeddelande", "vidarebefordrat", "alkuperäinen viesti",
	"wiadomość oryginalna", "oryginalna wiadomość", "исходное сообщение", "пересылаемое сообщение",
	"пересланное сообщение", "eredeti üzenet", "původní zpráva", "reply message", "reply to message", "邮件原件", "原始邮件",
	"転送メッセージ", "元のメッセージ", "원본 메일",
}

// banners are the texts that mail servers write above mail from outside.
var banners = []string{
	"originated from outside", "originates from outside", "came from outside", "sent from outside", "from an external sender",
	"external email:", "external sender", "this is an external email", "this email is from an external",
	"this message is from an external", "outside of your organization", "outside your organization",
	"outside the organization", "outside of the organization", "you don't often get email from", "learn why this is important",
	"do not click links or open attachments", "do not click on links or open attachments", "do not click any links or open",
	"unless you recognize the sender", "unless you recognise the sender", "von außerhalb der organisation",
	"von einem externen absender", "externe e-mail", "provient de l'extérieur", "expéditeur externe", "correo externo",
	"remitente externo", "[external]", "[extern]",
}

// bannerWords holds at least one word of each banner.
var bannerWords = []string{"extern", "extér", "outside", "often get", "click", "recogni", "learn why", "außerhalb"}

// devices are the lines that mail programs of phones append.
var devices = []string{
	"sent from my", "sent from mail for", "sent from outlook", "sent from yahoo", "sent from samsung", "sent from a mobile",
	"sent from proton", "sent with proton", "sent via", "sent with sparrow", "get outlook for", "get bluemail",
	"von meinem", "gesendet von", "gesendet mit", "diese nachricht wurde von meinem", "envoyé de mon", "envoyé depuis",
	"envoyé à partir", "enviado desde mi", "enviado desde", "enviado do meu", "enviado de mi", "inviato da", "inviato dal mio",
	"verzonden vanaf", "verstuurd vanaf", "skickat från min", "sendt fra min", "lähetetty iphonesta", "wysłane z",
	"отправлено с", "iphone'umdan gönderildi", "iphoneから送信", "从我的", "发自我的",
}

// deviceLetters are the first letters of devices in ASCII.
const deviceLetters = "sgvdeliw"

// closings are the words before a name at the end.
var closings = []string{
	"best", "best regards", "best wishes", "kind regards", "kindest regards", "warm regards", "warmest regards", "warmly",
	"regards", "thanks", "thanks again", "thanks a lot", "thanks so much", "many thanks", "thank you", "thank you very much",
	"thank you so much", "thanks and regards", "thanks & regards", "cheers", "sincerely", "yours sincerely", "sincerely yours",
	"yours faithfully", "yours truly", "yours", "respectfully", "all the best", "cordially", "love", "take care", "talk soon",
	"have a great day", "br", "rgds", "kr", "thx", "ciao", "mit freundlichen grüßen", "mit freundlichem gruß", "freundliche grüße",
	"viele grüße", "beste grüße", "liebe grüße", "herzliche grüße", "schöne grüße", "gruß", "grüße", "mfg", "lg", "vg",
	"mit besten grüßen", "mit freundlichen grüssen", "freundliche grüsse", "danke", "vielen dank", "cordialement",
	"bien cordialement", "bien à vous", "salutations", "sincères salutations", "merci", "à bientôt", "amicalement", "saludos",
	"un saludo", "saludos cordiales", "atentamente", "gracias", "muchas gracias", "cordiali saluti", "distinti saluti",
	"grazie", "saluti", "atenciosamente", "obrigado", "obrigada", "cumprimentos", "abraços", "met vriendelijke groet",
	"vriendelijke groet", "groeten", "bedankt", "med venlig hilsen", "venlig hilsen", "med vennlig hilsen", "hilsen", "mvh",
	"med vänliga hälsningar", "vänliga hälsningar", "hälsningar", "pozdrawiam", "z poważaniem", "с уважением", "спасибо",
	"ystävällisin terveisin", "terveisin", "üdvözlettel", "s pozdravem", "saygılarımla",
}

// legal are phrases of legal footers.
var legal = []string{
	"intended recipient", "intended solely for", "intended only for the", "for the sole use of the", "may contain confidential",
	"contains confidential", "confidential and may be", "privileged and confidential", "is confidential and",
	"confidentiality notice", "think before you print", "before printing this", "enthält vertrauliche",
	"nicht der richtige adressat", "vertrauliche und/oder", "ce message est confidentiel", "exclusivement à l'intention",
	"destinataire de ce message", "este mensaje es confidencial", "uso exclusivo de", "questo messaggio è riservato",
	"registered in england", "handelsregister", "amtsgericht", "geschäftsführer:",
}

// legalWords holds at least one word of each legal phrase.
var legalWords = []string{
	"intended", "confiden", "sole use", "print", "vertraulich", "adressat", "l'intention", "destinataire", "exclusivo", "riservato",
	"register", "gericht", "führer:",
}

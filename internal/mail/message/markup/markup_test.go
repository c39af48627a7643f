package markup_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message/markup"
)

func domain(url string) string {
	_, host, _ := strings.Cut(url, "://")
	host, _, _ = strings.Cut(host, "/")
	return host
}

func TestReadHides(t *testing.T) {
	t.Parallel()

	for source, reason := range map[string]string{
		`<div style="display:none">x</div>`:                                             "display:none",
		`<div style="DISPLAY : None !important">x</div>`:                                "display:none",
		`<div style="dis\70 lay:no\6e e">x</div>`:                                       "display:none",
		`<div style="display:/**/none">x</div>`:                                         "display:none",
		`<div style="background:url('a;b');display:none">x</div>`:                       "display:none",
		`<div style="font-family:&quot;open;display:none">x</div>`:                      "display:none",
		`<div style="display:none"><p>x</div>`:                                          "display:none",
		`<div style="display:none"><div style="display:block">x</div></div>`:            "display:none",
		`<span style="display:none"><div>.</span></div>x`:                               "display:none",
		`<p><font style="display:none">.</p>x`:                                          "display:none",
		`<p style="visibility:hidden">x</p>`:                                            "visibility",
		`<p hidden>x</p>`:                                                               "hidden",
		`<p style="opacity:.05">x</p>`:                                                  "opacity",
		`<div style="opacity:.3"><p style="opacity:.3">x</p></div>`:                     "opacity",
		`<p style="font-size:0">x</p>`:                                                  "font-size",
		`<p style="font-size:1pt">x</p>`:                                                "font-size",
		`<p style="font-size:.1em">x</p>`:                                               "font-size",
		`<p style="font-size:10%">x</p>`:                                                "font-size",
		`<p style="font:2px/1 serif">x</p>`:                                             "font-size",
		`<div style="max-height:0;overflow:hidden">x</div>`:                             "size",
		`<div style="width:1px;height:1px;overflow:hidden">x</div>`:                     "size",
		`<div style="position:absolute;left:-9999px">x</div>`:                           "position",
		`<div style="text-indent:-9999px">x</div>`:                                      "indent",
		`<div style="margin-left:-100em">x</div>`:                                       "indent",
		`<div style="clip:rect(0, 0, 0, 0)">x</div>`:                                    "clip",
		`<div style="clip-path:inset(50%)">x</div>`:                                     "clip",
		`<div style="mso-hide:all">x</div>`:                                             "mso-hide",
		`<div style="transform:scale(0)">x</div>`:                                       "transform",
		`<p style="color:white">x</p>`:                                                  "color",
		`<p style="color:#fefefe">x</p>`:                                                "color",
		`<p style="color:#FFF">x</p>`:                                                   "color",
		`<p style="color:rgb(250, 250, 250)">x</p>`:                                     "color",
		`<p style="color:rgba(0,0,0,.01)">x</p>`:                                        "color",
		`<p style="color:rgb(0 0 0 / 1%)">x</p>`:                                        "color",
		`<p style="color:hsl(0, 0%, 99%)">x</p>`:                                        "color",
		`<p style="color:transparent">x</p>`:                                            "color",
		`<font color="#ffffff">x</font>`:                                                "color",
		`<table bgcolor=navy><tr><td><font color="#000082">x</font></table>`:            "color",
		`<body bgcolor=black text=white><p style="background:white">x</p>`:              "color",
		`<style>.a{display:none}</style><p class="b a">x</p>`:                           "display:none",
		`<p class=a>x</p><style type="text/css"><!-- .a, h1 {display:none} --></style>`: "display:none",
		`<style>p#z{color:#fff}</style><p id=Z>x</p>`:                                   "color",
		`<style>.a{display:none !important}</style><p class=a style="display:block">x`:  "display:none",
		`<!-- x -->`:                "comment",
		`<title>x</title>`:          "title",
		`<svg><text>x</text></svg>`: "svg",
		`<noscript>x</noscript>`:    "noscript",
		`<object><p>x</object>`:     "object",
		`<template><p>x</template>`: "template",
		strings.Repeat("<div>", 400) + `<div style="display:none">x</div>`: "display:none",
	} {
		got := markup.Read("<body>"+source+"<p style='color:black;display:block'></p>", domain)
		if strings.Contains(got.Text, "x") || len(got.Hidden) == 0 || got.Hidden[len(got.Hidden)-1].Reason != reason ||
			!strings.Contains(got.Raw, "x") {
			t.Errorf("Read(%s) = %q with %v hidden, want it hidden by %s", source, got.Text, got.Hidden, reason)
		}
	}
}

func TestReadShows(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]string{
		`<p>One
			two</p><p>three<br>four`: "One two\n\nthree\nfour",
		`<div>a</div><div><div>b</div></div>c`:                                                    "a\nb\nc",
		`<ul><li>a<li>b<ul><li>c</ul></ul><ol><li><p>d</li><li>e</ol>`:                            "- a\n- b\n- c\n\n1. d\n\n2. e",
		`<table><tr><td>Total<td>5&nbsp;&euro;<tr><td>Tax</td> <td>1</table>`:                     "Total 5 €\nTax 1",
		`a<blockquote type=cite>b<br>c<blockquote class=gmail_quote>d</blockquote></blockquote>e`: "a\n>\n> b\n> c\n> >\n> > d\n\ne",
		`a<blockquote>b</blockquote>c wrote:<blockquote>d</blockquote>`:                           "a\n\nb\n\nc wrote:\n>\n> d",
		`<pre>a
b

c</pre>`: "a\nb\n\nc",
		`Go <b>to</b> <a href="https://example.com/x">the <i>shop</i></a>, now`:  "Go to the shop [example.com], now",
		`<a href="https://example.com"><img alt="no" src=x></a>`:                 "",
		`<p title="no" data-x="no">yes</p>`:                                      "yes",
		`<td style="font-size:0"><span style="font-size:14px">x</span></td>`:     "x",
		`<div style="visibility:hidden"><p style="visibility:visible">x</div>`:   "x",
		`<div style="color:#fff;background:#333">x</div>`:                        "x",
		`<div style="background:url(a.png)"><p style="color:white">x</div>`:      "x",
		`<table style="display:none">x<tr><td>y</table>`:                         "x",
		`<b style="display:none">y</b>x`:                                         "x",
		`<span style="display:none"><b>y</span>x`:                                "x",
		`<p><span style="display:none">y</p>x`:                                   "x",
		`<!--<style>p{display:none}</style>--><p>x</p>`:                          "x",
		`<style>@media print{p{display:none}} b{color:red}</style><p>x</p>`:      "x",
		`<head><div>x</div></head>`:                                              "x",
		`<div style="height:1px">x</div>`:                                        "x",
		`<a href="http://a.example" style="color:#ffffff;background:#00f">x</a>`: "x [a.example]",
		`x<script>if (a < b) y()</script>`:                                       "x",
		`<o:p>&nbsp;</o:p>x<o:p></o:p>`:                                          "x",
		`</div></p></b>x</body>y`:                                                "xy",
		"":                                                                       "",
		"<p":                                                                     "",
		"a < b & c &amp; d &#x41; &bogus;":                                       "a < b & c & d A &bogus;",
	} {
		if got := markup.Read(source, domain); got.Text != want {
			t.Errorf("Read(%s) = %q, want %q; hidden %v", source, got.Text, want, got.Hidden)
		}
	}
}

func TestReadReports(t *testing.T) {
	t.Parallel()

	got := markup.Read(`<base href="https://a.example/b/"><form action="https://c.example/login"><input></form>
		<img src="https://t.example/o.gif" width=1 height="1"><img src=logo.png width=200><img src="x" style="width:0;height:0">
		<img src="https://t.example/open/0123456789abcdef0123456789abcdef01">
		<a href="d">here</a><a href=" java
script:x">there</a><a href="data:text/html,hello">data</a><a href="#top">top</a>
		<div class="gmail_signature">Me</div><div class="gmail_quote">Old</div>`, domain)

	var urls []string
	for _, link := range got.Links {
		urls = append(urls, link.Text+"="+link.URL)
	}
	if want := "=https://c.example/login here=https://a.example/b/d"; !strings.HasPrefix(strings.Join(urls, " "), want) {
		t.Errorf("Links = %q, want %q", urls, want)
	}
	if strings.Contains(strings.Join(urls, " "), "hello") || len(urls) != 4 {
		t.Errorf("Links = %q", urls)
	}
	if got.Pixels != 3 || got.Forms != 1 {
		t.Errorf("%d pixels and %d forms, want 3 and 1", got.Pixels, got.Forms)
	}
	lines := strings.Split(got.Text, "\n")
	if len(got.Marks) != 2 || got.Marks[0].Kind != markup.MarkSignature || lines[got.Marks[0].From] != "Me" ||
		got.Marks[1].Kind != markup.MarkQuote || lines[got.Marks[1].From] != "Old" || got.Marks[0].To != got.Marks[1].From {
		t.Errorf("Marks = %+v of %q", got.Marks, lines)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`<p style="color:#fff">a<b>c</p>d</b><table>x<td><a href=y>z`)
	f.Add(`<style>p{display:none}</style><p>x<!-- y --><img src=z width=1>`)
	f.Add(`<div style="font:0/0 a;background:url(;x:y\64"><blockquote><li>`)
	f.Fuzz(func(t *testing.T, source string) {
		got := markup.Read(source, domain)
		lines := strings.Count(got.Text, "\n") + 1
		for _, mark := range got.Marks {
			if mark.From < 0 || mark.To <= mark.From || mark.To > lines {
				t.Errorf("mark %+v of %d lines", mark, lines)
			}
		}
		if strings.HasPrefix(got.Text, "\n") || strings.Contains(got.Text, "\n\n\n") {
			t.Errorf("Text = %q", got.Text)
		}
	})
}

// Text from agents, tools and people is data. shown() is the one way it comes onto the page.

// hidden matches characters that do not show, or that change the order in which others show: controls, format
// characters, variation selectors, the tag block, line and paragraph separators, and unusual spaces.
const hidden = new RegExp(
  '[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cn}' +
    '\\u2028\\u2029\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000' +
    '\\u115f\\u1160\\u3164\\uffa0\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}]',
  'gu',
)

// shown returns text with every character that does not show written out as \u{202E}. Line breaks and tabs stay where
// the text may have several lines.
export function shown(text: string, lines: 'one line' | 'lines' = 'one line'): string {
  return text.replace(hidden, (c) => {
    if (lines === 'lines' && (c === '\n' || c === '\t')) return c
    return `\\u{${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}}`
  })
}

// hides says whether text has characters that shown() writes out.
export function hides(text: string, lines: 'one line' | 'lines' = 'one line'): boolean {
  return shown(text, lines) !== text
}

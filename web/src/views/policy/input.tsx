import type { ComponentProps } from 'react'

// Text is a field of one line for names and other short texts.
export function Text({
  most,
  onText,
  ...rest
}: Omit<ComponentProps<'input'>, 'onChange' | 'maxLength'> & { most: number; onText: (text: string) => void }) {
  return (
    <input
      {...rest}
      maxLength={most}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onText(event.target.value)}
    />
  )
}

// The focus at the bar of a decision: controls there come and go with the acts of a person.
import { useEffect } from 'react'

const bar = '.inbox-detail .bar'

let held = false

// holdsBar reports whether the focus is at the bar.
export const holdsBar = () => document.activeElement?.closest(bar) != null

// toBar moves the focus to the bar, from where Tab leads to the first thing that a person can do; or to what is open,
// where that is still being loaded.
export function toBar() {
  const to = document.querySelector<HTMLElement>(bar) ?? document.querySelector<HTMLElement>('.inbox-detail')
  if (!to) return
  to.tabIndex = -1
  to.focus({ preventScroll: true })
}

// useHand keeps the focus at the bar when the control that had it is replaced.
export function useHand() {
  useEffect(() => {
    const heard = ({ target }: Event) => {
      held = target instanceof Element && target.closest(bar) !== null
    }
    addEventListener('focusin', heard)
    addEventListener('pointerdown', heard)
    return () => {
      removeEventListener('focusin', heard)
      removeEventListener('pointerdown', heard)
    }
  }, [])
}

// useHeld is for what is open: behind every change the focus is at the bar again, if it was there and is nowhere.
export function useHeld() {
  useEffect(() => {
    if (held && document.activeElement === document.body) toBar()
  })
}

const firstField = () => document.querySelector<HTMLElement>('.form :is(input, textarea, select)')

// begun is the item whose form takes the focus once it is drawn.
let begun: string | undefined

// toForm moves the focus to the first field of an item's form, now or once the form is drawn.
export function toForm(id: string) {
  const field = firstField()
  begun = field ? undefined : id
  field?.focus()
}

// useBegun calls toForm again once the form of the item is drawn, if it was not drawn before.
export function useBegun(id: string, drawn: boolean) {
  useEffect(() => {
    if (drawn && begun === id) toForm(id)
  }, [id, drawn])
}

// Whether a person can bring every value into view: what is decided about must not be clipped, squeezed or left out.
import { type RefObject, useEffect, useState } from 'react'
import { afterPaint } from '../lib/painted'

// leastWidth is how wide the box of a value must be, and leastView how large what it scrolls in, in pixels.
const leastWidth = 24
const leastView = 40

interface Ancestor {
  edge: DOMRect
  clipsX: boolean
  clipsY: boolean
  scrolls: boolean
}

function ancestorOf(element: Element): Ancestor {
  const { overflowX, overflowY, contain } = getComputedStyle(element)
  const paint = /paint|content|strict/.test(contain)
  const clips = (overflow: string) => overflow === 'hidden' || overflow === 'clip' || (paint && overflow === 'visible')
  return {
    edge: element.getBoundingClientRect(),
    clipsX: clips(overflowX),
    clipsY: clips(overflowY),
    scrolls: /auto|scroll/.test(overflowX + overflowY),
  }
}

// reachable reports whether scrolling can bring a box of an element into the window.
function reachable(element: HTMLElement, known: Map<Element, Ancestor>): boolean {
  let box = element.getBoundingClientRect()
  if (
    box.width < leastWidth ||
    box.height < 1 ||
    !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  )
    return false
  if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX === 'visible') return false
  for (let at = element.parentElement; at && at !== document.documentElement; at = at.parentElement) {
    const ancestor = known.get(at) ?? ancestorOf(at)
    known.set(at, ancestor)
    const { edge, clipsX, clipsY, scrolls } = ancestor
    if (clipsX && (box.left < edge.left - 1 || box.right > edge.right + 1)) return false
    if (clipsY && (box.top < edge.top - 1 || box.bottom > edge.bottom + 1)) return false
    // The elements around a dialog do not clip it.
    if (at instanceof HTMLDialogElement) break
    if (!scrolls) continue
    const left = box.left - edge.left + at.scrollLeft
    const top = box.top - edge.top + at.scrollTop
    if (edge.width < leastView || edge.height < leastView) return false
    if (left < -1 || top < -1 || left + box.width > at.scrollWidth + 2 || top + box.height > at.scrollHeight + 2)
      return false
    box = edge
  }
  return box.left >= -1 && box.right <= innerWidth + 1
}

// unseenIn returns those of some values that cannot be seen in an element. A value is shown by an element with its name
// in data-value.
export function unseenIn(root: Element, names: readonly string[]): string[] {
  const shown = new Map(
    [...root.querySelectorAll<HTMLElement>('[data-value]')].map((element) => [element.dataset.value!, element]),
  )
  const known = new Map<Element, Ancestor>()
  return names.filter((name) => {
    const element = shown.get(name)
    return !element || !reachable(element, known)
  })
}

// useUnseen returns those of some values that cannot be seen, measured again whenever the element has another size;
// undefined while that is not known.
export function useUnseen(root: RefObject<Element | null>, names: readonly string[]): readonly string[] | undefined {
  const [measured, setMeasured] = useState<{ names: readonly string[]; unseen: readonly string[] }>()
  useEffect(() => {
    const measure = () => {
      const unseen = root.current ? unseenIn(root.current, names) : names
      setMeasured((was) =>
        was?.names === names && was.unseen.join('\n') === unseen.join('\n') ? was : { names, unseen },
      )
    }
    const observer = new ResizeObserver(measure)
    const cancel = afterPaint(() => {
      measure()
      if (root.current) observer.observe(root.current)
    })
    addEventListener('resize', measure)
    return () => {
      cancel()
      observer.disconnect()
      removeEventListener('resize', measure)
    }
  }, [root, names])
  return measured?.names === names ? measured.unseen : undefined
}

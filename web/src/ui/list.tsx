// A list that one walks with the keyboard.
import {
  defaultRangeExtractor,
  observeElementOffset,
  type Range,
  useVirtualizer,
  type Virtualizer,
} from '@tanstack/react-virtual'
import { memo, type ReactNode, type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'react'
import { useCommands } from '../lib/keys'
import { afterPaint } from '../lib/painted'

// inDocument is how many rows are all in the document, where find-in-page and copying see them. Of more rows, those
// around what is shown are there, and the selected one, which may have the focus.
export const inDocument = 200

export interface ListProps<T> {
  label: string
  items: readonly T[]
  keyOf: (item: T) => string
  selected: string | undefined
  onSelect: (key: string, item: T) => void
  // onOpen is called for Enter, o and a click on the row.
  onOpen?: (key: string, item: T) => void
  marked?: ReadonlySet<string>
  // onMark gets the new marks: by the boxes, with Shift those in between too, and by x, Shift+J and Shift+K.
  onMark?: (marked: Set<string>) => void
  // row draws a row. The list draws all rows again where it is another function.
  row: (item: T, state: { selected: boolean }) => ReactNode
  // rowHeight is the height of a row in pixels, for lists of which not all rows are in the document.
  rowHeight?: number
  // heads stand above the row of an index, those of the number of rows below all; each is headHeight pixels high.
  heads?: ReadonlyMap<number, readonly ReactNode[]> | undefined
  // onEnd is called when the last rows come into view.
  onEnd?: (() => void) | undefined
  // keys switches the keys of the list off, where another list has them.
  keys?: boolean
}

export const headHeight = 40
const noHeads: ReadonlyMap<number, readonly ReactNode[]> = new Map()

// withRow returns the rows of a range, in order, and one more.
export function withRow(range: number[], row: number): number[] {
  if (row < 0 || range.includes(row)) return range
  return row < (range[0] ?? Infinity) ? [row, ...range] : [...range, row]
}

// overscan is how many rows beyond those in view are in the document.
const overscan = 6

// reveal scrolls a list as little as it must so that a row is in view. It returns where the list is then, if what comes
// into view is in the document already.
function reveal(
  { scrollElement: list, scrollOffset, scrollRect }: Virtualizer<HTMLDivElement, Element>,
  top: number,
  height: number,
) {
  const from = scrollOffset ?? 0
  const room = scrollRect?.height ?? 0
  const to = top < from ? top : Math.max(from, top + height - room)
  if (to === from) return undefined
  list!.scrollTop = to
  return Math.abs(to - from) <= overscan * height ? list!.scrollTop : undefined
}

export function List<T>(props: ListProps<T>) {
  const {
    label,
    items,
    keyOf,
    selected,
    onSelect,
    onOpen,
    marked,
    onMark,
    row,
    rowHeight = 56,
    heads = noHeads,
    onEnd,
    keys = true,
  } = props
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = items.length > inDocument
  const at = useMemo(() => items.findIndex((item) => keyOf(item) === selected), [items, keyOf, selected])
  const rangeExtractor = useCallback((range: Range) => withRow(defaultRangeExtractor(range), at), [at])
  // jumped is where the list scrolled by itself: the rows behind it are drawn once what a person asked for is painted.
  const jumped = useRef<number>(undefined)
  const observe = useCallback(
    (of: Virtualizer<HTMLDivElement, Element>, heard: (offset: number, scrolling: boolean) => void) => {
      let cancel = () => {}
      const end = observeElementOffset(of, (offset, scrolling) => {
        const own = offset === jumped.current
        jumped.current = undefined
        cancel()
        if (own) cancel = afterPaint(() => heard(of.scrollElement!.scrollTop, scrolling))
        else heard(offset, scrolling)
      })
      return () => {
        cancel()
        end?.()
      }
    },
    [],
  )
  const virtualizer = useVirtualizer({
    observeElementOffset: observe,
    count: items.length,
    enabled: virtual,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => rowHeight + headHeight * (heads.get(index)?.length ?? 0),
    paddingEnd: headHeight * (heads.get(items.length)?.length ?? 0),
    overscan,
    rangeExtractor,
    // A list that grows beyond what is in the document stays where it was scrolled to.
    initialOffset: () => scroller.current?.scrollTop ?? 0,
  })

  // layout is where the heads stand: rows are measured again where it changed.
  const layout = useMemo(() => [...heads].map(([index, of]) => `${index}:${of.length}`).join(' '), [heads])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the virtualizer is one object for as long as the list is
  useLayoutEffect(() => virtualizer.measure(), [layout])

  const go = (to: number) => {
    const item = items[Math.max(0, Math.min(items.length - 1, to))]
    if (item !== undefined) onSelect(keyOf(item), item)
  }
  const mark = (...indexes: number[]) => {
    const next = new Set(marked)
    for (const index of indexes) if (items[index] !== undefined) next.add(keyOf(items[index]))
    onMark?.(next)
  }
  const toggle = () => {
    const next = new Set(marked)
    if (selected !== undefined && !next.delete(selected)) next.add(selected)
    onMark?.(next)
  }
  // from is the row whose box was used last.
  const from = useRef(-1)
  const tick = (index: number, on: boolean, range: boolean) => {
    const begin = range && from.current >= 0 ? from.current : index
    from.current = index
    const next = new Set(marked)
    for (const item of items.slice(Math.min(begin, index), Math.max(begin, index) + 1)) {
      if (on) next.add(keyOf(item))
      else next.delete(keyOf(item))
    }
    onMark?.(next)
  }
  const nothing = items.length === 0 ? 'The list is empty.' : undefined
  const open = () => items[at] !== undefined && onOpen?.(keyOf(items[at]), items[at])
  const extend = (by: number) => {
    mark(at, at + by)
    go(at + by)
  }
  useCommands([
    keys && { id: 'next', whyNot: nothing, run: () => go(at + 1) },
    keys && { id: 'previous', whyNot: nothing, run: () => go(at < 0 ? 0 : at - 1) },
    keys && onOpen && { id: 'open', whyNot: nothing ?? (at < 0 ? 'Nothing is selected.' : undefined), run: open },
    keys && onMark && { id: 'mark', whyNot: nothing ?? (at < 0 ? 'Nothing is selected.' : undefined), run: toggle },
    keys && onMark && { id: 'extend_down', whyNot: nothing, run: () => extend(1) },
    keys && onMark && { id: 'extend_up', whyNot: nothing, run: () => extend(-1) },
  ])

  const choose = (key: string, item: T) => {
    onSelect(key, item)
    onOpen?.(key, item)
  }
  const acts = useRef({ choose, tick })
  useLayoutEffect(() => {
    acts.current = { choose, tick }
  })

  const headsAbove = (index: number) => headHeight * (heads.get(index)?.length ?? 0)
  const shown = virtual
    ? virtualizer.getVirtualItems().map((v) => ({ index: v.index, top: v.start + headsAbove(v.index) }))
    : items.map((_, index) => ({ index, top: undefined }))
  const drawn = shown.length > 0

  // revealed is the row that was brought into view last: a list that grows stays where it was scrolled to.
  const revealed = useRef('')
  // The selected row comes into view by the list's own scrolling: the page never moves.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the virtualizer is one object for as long as the list is
  useLayoutEffect(() => {
    if (at < 0) return
    const shownRow = scroller.current?.querySelector<HTMLElement>('[aria-current=true]')
    // Where the list knows its rows' heights, the browser need not lay the page out to tell whether one is in view.
    const place = `${selected} ${at} ${layout}`
    if (revealed.current === place || !drawn) {
      // It was in view, or nothing is.
    } else if (!virtual) shownRow?.scrollIntoView({ block: 'nearest' })
    else {
      let above = 0
      for (const [index, of] of heads) if (index <= at) above += of.length
      jumped.current = reveal(virtualizer, at * rowHeight + above * headHeight, rowHeight)
    }
    if (drawn) revealed.current = place
    const focused = document.activeElement
    if (
      shownRow &&
      (focused === document.body || (focused?.classList.contains('list-row') && scroller.current?.contains(focused)))
    ) {
      shownRow.focus({ preventScroll: true })
    }
  }, [selected, at, virtual, drawn, rowHeight, layout])

  // Where not all rows are in the document, the list knows without the browser's layout which are in view.
  const end = virtual ? (virtualizer.range?.endIndex ?? 0) : -1
  useEffect(() => {
    if (end >= items.length - 20) onEnd?.()
  }, [end, items.length, onEnd])
  useEffect(() => {
    const element = scroller.current
    if (!element || !onEnd || virtual) return
    const near = () => element.scrollTop + element.clientHeight > element.scrollHeight - 20 * rowHeight && onEnd()
    near()
    element.addEventListener('scroll', near, { passive: true })
    return () => element.removeEventListener('scroll', near)
  }, [onEnd, rowHeight, items.length, heads, virtual])

  const draw = ({ index, top }: { index: number; top: number | undefined }) => {
    const item = items[index]
    if (item === undefined) return null
    const key = keyOf(item)
    return (
      <Line
        key={key}
        id={key}
        item={item}
        index={index}
        of={items.length}
        top={top}
        height={rowHeight}
        selected={key === selected}
        tabs={key === selected || (at < 0 && index === 0)}
        marked={onMark && (marked?.has(key) ?? false)}
        acts={acts}
        row={row}
      />
    )
  }
  const drawHeads = (index: number, bottom: number | undefined) => {
    const of = heads.get(index) ?? []
    return of.map((head, i) => (
      <li
        key={(head as { key?: string | null } | null)?.key ?? `head ${index} ${i}`}
        className={bottom === undefined ? 'list-head' : 'list-head list-virtual'}
        style={
          bottom === undefined ? undefined : { transform: `translateY(${bottom - (of.length - i) * headHeight}px)` }
        }
      >
        {head}
      </li>
    ))
  }
  return (
    <div className="list" ref={scroller}>
      <ul aria-label={label} style={virtual ? { height: virtualizer.getTotalSize() } : undefined}>
        {shown.flatMap((one) => [...drawHeads(one.index, one.top), draw(one)])}
        {drawHeads(items.length, virtual ? virtualizer.getTotalSize() : undefined)}
      </ul>
    </div>
  )
}

interface LineProps<T> {
  id: string
  item: T
  index: number
  of: number
  // top is undefined where all rows are in the document.
  top: number | undefined
  height: number
  selected: boolean
  // tabs reports whether Tab leads to it.
  tabs: boolean
  // marked is undefined where rows are not marked.
  marked: boolean | undefined
  acts: RefObject<{
    choose: (key: string, item: T) => void
    tick: (index: number, on: boolean, range: boolean) => void
  }>
  row: ListProps<T>['row']
}

// Line is a row. It is drawn again where it changed alone, also by another function that draws rows.
const Line = memo(function Line<T>({
  id,
  item,
  index,
  of,
  top,
  height,
  selected,
  tabs,
  marked,
  acts,
  row,
}: LineProps<T>) {
  const names = ['list-row', selected && 'selected', marked && 'marked', top !== undefined && 'list-virtual']
  return (
    <li
      className={names.filter(Boolean).join(' ')}
      style={top === undefined ? undefined : { transform: `translateY(${top}px)`, height }}
      tabIndex={tabs ? 0 : -1}
      aria-current={selected || undefined}
      aria-setsize={of}
      aria-posinset={index + 1}
      onClick={(event) => {
        // A control inside of the row acts for itself.
        if ((event.target as Element).closest('a, button, input, label, select, summary')) return
        acts.current.choose(id, item)
      }}
    >
      {marked !== undefined && (
        <label className="row-mark" onMouseDown={(event) => event.shiftKey && event.preventDefault()}>
          <input
            type="checkbox"
            aria-label="Mark"
            tabIndex={-1}
            checked={marked}
            onChange={(event) =>
              acts.current.tick(index, event.target.checked, (event.nativeEvent as MouseEvent).shiftKey === true)
            }
          />
        </label>
      )}
      {row(item, { selected })}
    </li>
  )
}) as <T>(props: LineProps<T> & { key: string }) => ReactNode

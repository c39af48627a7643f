// Dialogs and sheets are the browser's own: it keeps the focus inside, and closes on Escape.
import { type ReactNode, useContext, useEffect, useRef } from 'react'
import { Layer, useCommands } from '../lib/keys'
import { IconButton } from './button'

export interface DialogProps {
  title: ReactNode
  onClose: () => void
  children: ReactNode
  // actions stand at the end: what the dialog is for, and the way out.
  actions?: ReactNode
  // wide takes the whole width of the window.
  kind?: 'dialog' | 'wide' | 'sheet' | 'palette'
  // mustAnswer leaves the way out to the dialog's own actions.
  mustAnswer?: boolean
}

// begin moves the focus to the first control of a dialog that is not its way out, or to its title.
function begin(dialog: HTMLElement | null) {
  const first =
    dialog?.querySelector<HTMLElement>('[autofocus]') ??
    dialog?.querySelector<HTMLElement>('.dialog-body :is(input:not([type=hidden]), select, textarea)') ??
    dialog?.querySelector<HTMLElement>('.dialog-actions button:not([aria-disabled=true])') ??
    dialog?.querySelector<HTMLElement>('.dialog-head h2')
  first?.focus({ preventScroll: true })
}

// back moves the focus to where it was before a dialog: to the element that had it, to the selected row of a list, or
// to the page's main part.
function back(before: Element | null) {
  const to =
    before instanceof HTMLElement && before !== document.body && before.id !== 'main' && before.isConnected
      ? before
      : (document.querySelector<HTMLElement>('main .list-row[aria-current=true]') ?? document.getElementById('main'))
  to?.focus({ preventScroll: true })
}

// Dialog is open while it is rendered.
export function Dialog({ title, onClose, children, actions, kind = 'dialog', mustAnswer }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const layer = useContext(Layer)
  useEffect(() => {
    const before = document.activeElement
    const dialog = element.current
    dialog?.showModal()
    if (!dialog?.contains(document.activeElement) || document.activeElement?.closest('.dialog-head')) begin(dialog)
    return () => {
      dialog?.close()
      back(before)
    }
  }, [])
  return (
    <dialog
      ref={element}
      className={kind}
      aria-label={typeof title === 'string' ? title : undefined}
      onKeyDown={(event) => {
        // Before the keys of the page hear it.
        if (event.key !== 'Escape' || event.defaultPrevented) return
        event.preventDefault()
        if (!mustAnswer) onClose()
      }}
      onCancel={(event) => {
        event.preventDefault()
        if (!mustAnswer) onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current && !mustAnswer && kind !== 'dialog' && kind !== 'wide') onClose()
      }}
    >
      <Layer value={layer + 1}>
        <Rest />
        {kind !== 'palette' && (
          <header className="dialog-head">
            <h2 tabIndex={-1}>{title}</h2>
            {!mustAnswer && <IconButton icon="cross" label="Close" onClick={onClose} />}
          </header>
        )}
        <div className="dialog-body">{children}</div>
        {actions && <footer className="dialog-actions">{actions}</footer>}
      </Layer>
    </dialog>
  )
}

// Rest makes the keys of the page rest under a dialog that binds none itself.
function Rest() {
  useCommands([])
  return null
}

// Sheet is a dialog at the right edge (at the lower one on a phone), beside what it is about.
export function Sheet(props: Omit<DialogProps, 'kind'>) {
  return <Dialog {...props} kind="sheet" />
}

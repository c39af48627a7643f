// Dialogs and sheets are the browser's own: it keeps the focus inside, and closes on Escape.
import { type ReactNode, useContext, useEffect, useRef } from 'react'
import { Layer } from '../lib/keys'
import { IconButton } from './button'

export interface DialogProps {
  title: ReactNode
  onClose: () => void
  children: ReactNode
  // actions stand at the end: what the dialog is for, and the way out.
  actions?: ReactNode
  kind?: 'dialog' | 'sheet' | 'palette'
  // mustAnswer leaves the way out to the dialog's own actions.
  mustAnswer?: boolean
}

// Dialog is open while it is rendered. Afterwards the focus is where it was, or on the page's main part.
export function Dialog({ title, onClose, children, actions, kind = 'dialog', mustAnswer }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const layer = useContext(Layer)
  useEffect(() => {
    const before = document.activeElement
    const dialog = element.current
    dialog?.showModal()
    return () => {
      dialog?.close()
      const back =
        before instanceof HTMLElement && before !== document.body && before.isConnected
          ? before
          : document.getElementById('main')
      back?.focus({ preventScroll: true })
    }
  }, [])
  return (
    <dialog
      ref={element}
      className={kind}
      aria-label={typeof title === 'string' ? title : undefined}
      onCancel={(event) => {
        event.preventDefault()
        if (!mustAnswer) onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current && !mustAnswer && kind !== 'dialog') onClose()
      }}
    >
      <Layer value={layer + 1}>
        {kind !== 'palette' && (
          <header className="dialog-head">
            <h2>{title}</h2>
            {!mustAnswer && <IconButton icon="cross" label="Close" onClick={onClose} />}
          </header>
        )}
        <div className="dialog-body">{children}</div>
        {actions && <footer className="dialog-actions">{actions}</footer>}
      </Layer>
    </dialog>
  )
}

// Sheet is a dialog at the right edge (at the lower one on a phone), beside what it is about.
export function Sheet(props: Omit<DialogProps, 'kind'>) {
  return <Dialog {...props} kind="sheet" />
}

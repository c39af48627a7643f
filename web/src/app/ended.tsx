import { useEffect, useRef } from 'react'
import { useMe } from '../lib/me'
import { queries } from '../lib/query'
import { touch, useSessionEnded } from '../lib/session'
import { useNow } from '../lib/time'
import { Dialog, toast } from '../ui'
import { LoginForm } from './login'

const noticeBefore = 2 * 60_000

// SessionEnd says two minutes before that the session ends, and afterwards stands over the page until somebody logs in.
// What was being typed stays below.
export function SessionEnd() {
  const ended = useSessionEnded()
  const session = useMe().data?.session
  const now = useNow(5_000)
  const drop = useRef<(() => void) | undefined>(undefined)
  const endsAt = session ? Math.min(Date.parse(session.idle_at), Date.parse(session.expires_at)) : Infinity
  const idle = session ? Date.parse(session.idle_at) < Date.parse(session.expires_at) : false
  const near = now > endsAt - noticeBefore && now < endsAt
  const over = now >= endsAt
  useEffect(() => {
    if (!near || ended) return
    drop.current = toast({
      text: idle
        ? 'Nothing was done here for a while: your session ends in two minutes.'
        : 'Your session ends in two minutes. Afterwards you log in again; drafts stay.',
      lastsMs: 0,
      ...(idle ? { action: { label: 'Stay logged in', run: () => void touch() } } : {}),
    })
    return () => drop.current?.()
  }, [near, ended, idle])
  // The server knows whether the session has ended: another tab may have kept it.
  useEffect(() => {
    if (over && !ended) void queries.invalidateQueries({ queryKey: ['me'] })
  }, [over, ended])
  if (!ended) return null
  return (
    <Dialog title="Your session ended" onClose={() => undefined} mustAnswer>
      <div className="stack">
        <p>Log in again to continue. Your unsaved text is kept.</p>
        <LoginForm to="/login" newTab />
      </div>
    </Dialog>
  )
}

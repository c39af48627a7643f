// The browser's session: whether it has ended, and what tabs tell each other about it.
import { useEffect, useSyncExternalStore } from 'react'
import { post } from './client'
import { type Me, meKey } from './me'
import { onRefused, queries } from './query'

type Told = 'login' | 'logout'

let ended = false
const listeners = new Set<() => void>()
const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel('countersign.session')

function set(next: boolean) {
  if (ended === next) return
  ended = next
  for (const heard of listeners) heard()
}

// sessionEnded says that the server no longer knows the session.
export const sessionEnded = () => set(true)

// A page that shows something says that its session ended; one that shows nothing yet leads to the login.
onRefused(() => queries.getQueryData(meKey) && sessionEnded())

export function useSessionEnded(): boolean {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard)
      return () => listeners.delete(heard)
    },
    () => ended,
  )
}

// loggedIn takes a new session in. What was read stays where it is the same person; else the page begins anew, since
// nothing of one person may be shown to another.
export function loggedIn(me: Me, tell = true) {
  const before = queries.getQueryData<Me>(meKey)
  const same =
    !before ||
    (before.tenant_id === me.tenant_id &&
      before.operator_id === me.operator_id &&
      before.name === me.name &&
      before.role === me.role)
  if (tell) channel?.postMessage('login' satisfies Told)
  if (!same) return location.reload()
  queries.setQueryData(meKey, me)
  set(false)
  void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== meKey[0] })
}

export type CodeHolder = { name: string; role: string; tenant: string }

// holderOf says whom a one-time code logs in, and leaves the code as it is.
export const holderOf = (code: string) => post<CodeHolder>('/auth/code', { code })

// login opens a session by a one-time code or a token.
export async function login(by: { code: string } | { token: string }): Promise<void> {
  loggedIn(await post<Me>('/auth/session', by))
}

// logout ends the session here and in all tabs.
export async function logout() {
  await post('/auth/logout')
  channel?.postMessage('logout' satisfies Told)
  location.assign('/login')
}

const touchEvery = 5 * 60_000

// useSession follows other tabs, and tells the server that a person is here, at most every five minutes.
export function useSession(me: Me | undefined) {
  useEffect(() => {
    if (!channel) return
    const heard = (message: MessageEvent<Told>) => {
      if (message.data === 'logout') location.assign('/login')
      else void fetchMe().then((now) => now && loggedIn(now, false))
    }
    channel.addEventListener('message', heard)
    return () => channel.removeEventListener('message', heard)
  }, [])
  const has = Boolean(me?.session)
  useEffect(() => {
    if (!has) return
    let touched = Date.now()
    const active = () => {
      if (ended || Date.now() - touched < touchEvery) return
      touched = Date.now()
      void touch()
    }
    addEventListener('keydown', active, { passive: true })
    addEventListener('pointerdown', active, { passive: true })
    return () => {
      removeEventListener('keydown', active)
      removeEventListener('pointerdown', active)
    }
  }, [has])
}

// touch keeps the session from ending for being idle.
export async function touch() {
  const ends = await post<NonNullable<Me['session']>>('/auth/touch').catch(() => undefined)
  if (ends) queries.setQueryData<Me>(meKey, (me) => me && { ...me, session: ends })
}

async function fetchMe(): Promise<Me | undefined> {
  const answer = await fetch('/api/v1/me', { headers: { Accept: 'application/json' } })
  return answer.ok ? ((await answer.json()) as Me) : undefined
}

// ownPath returns the path to go to after login: one of this page, never another site's.
export function ownPath(to: string | null): string {
  if (!to || !/^\/(?![/\\])/.test(to) || /[\\\p{Cc}]/u.test(to) || to.startsWith('/login')) return '/inbox'
  return to
}

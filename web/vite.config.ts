import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// The names of built files carry no hash: web/dist is committed, and the server puts the digest of the whole folder
// into the path instead.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    target: 'es2023',
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        // A view's part of the page is named after its folder.
        chunkFileNames: ({ facadeModuleId }) =>
          `${/views\/([a-z-]+)\//.exec(facadeModuleId ?? '')?.[1] ?? '[name]'}.js`,
        assetFileNames: ({ names }) => (names.some((name) => name.endsWith('.css')) ? 'index.css' : '[name][extname]'),
      },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8080', '/auth': 'http://127.0.0.1:8080' } },
  test: {
    include: ['src/**/*.test.ts', 'src/**/*.test.tsx'],
    isolate: false,
  },
})

"use strict";
// Two pages compared.
(() => {
  fusec.views.compared = async () => ({element: fusec.h("div", null)});
})();

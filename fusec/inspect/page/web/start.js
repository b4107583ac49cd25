"use strict";
fusec.begin();
